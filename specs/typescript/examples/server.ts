/**
 * A shop: an order above the limit goes to a manager. It keeps its orders until it ends.
 *
 *     node examples/server.ts              # stdio
 *     node examples/server.ts --http 8000  # Streamable HTTP, http://127.0.0.1:8000/mcp
 *
 * Both speak revisions 2026-07-28 and 2025-11-25.
 */
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { CAPABILITIES, follows, withNextTool } from '../src/server.ts';

/** More pieces than this need a manager. */
const LIMIT = 100;

const TOOLS = {
  place_order: {
    name: 'place_order',
    inputSchema: {
      type: 'object' as const,
      properties: { sku: { type: 'string' as const, minLength: 1 }, quantity: { type: 'integer' as const, minimum: 1 } },
      required: ['sku', 'quantity'],
    },
  },
  ask_manager: {
    name: 'ask_manager',
    inputSchema: {
      type: 'object' as const,
      properties: { order: { type: 'string' as const } },
      required: ['order'],
    },
  },
};

const orders = new Map<string, { status: 'placed' | 'waiting' | 'asked' }>();

function shop(): McpServer {
  const mcp = new McpServer({ name: 'shop', version: '1.0.0' }, { capabilities: { tools: {}, ...CAPABILITIES } });

  mcp.registerTool(
    'place_order',
    {
      description: 'Orders goods. An order above the limit waits for a manager.',
      inputSchema: fromJsonSchema<{ sku: string; quantity: number }>(TOOLS.place_order.inputSchema),
      annotations: { destructiveHint: false, openWorldHint: false },
    },
    ({ sku, quantity }, ctx) => {
      const order = `order-${orders.size + 1}`;
      const large = quantity > LIMIT;
      orders.set(order, { status: large ? 'waiting' : 'placed' });
      if (!large) return text(`${order}: ${quantity} of ${sku} are on their way.`);
      return withNextTool(
        text(`${order}: a manager has to agree to more than ${LIMIT} pieces.`),
        { tool: 'ask_manager', arguments: { order }, title: 'Ask a manager to agree to a large order' },
        Object.values(TOOLS),
        { follows: follows(mcp.server, ctx) },
      );
    },
  );

  mcp.registerTool(
    'ask_manager',
    {
      description: 'Asks a manager to agree to an order that waits.',
      inputSchema: fromJsonSchema<{ order: string }>(TOOLS.ask_manager.inputSchema),
      annotations: { destructiveHint: false, openWorldHint: false },
    },
    ({ order }) => {
      const found = orders.get(order);
      if (found?.status !== 'waiting') return { ...text(`No order ${order} waits for a manager.`), isError: true };
      found.status = 'asked';
      return text(`A manager will look at ${order} today.`);
    },
  );
  return mcp;
}

const text = (text: string) => ({ content: [{ type: 'text' as const, text }] });

const { http } = parseArgs({ options: { http: { type: 'string' } } }).values;
if (http === undefined) {
  serveStdio(shop);
} else {
  const handle = toNodeHandler(createMcpHandler(shop));
  const [host, origin] = [localhostHostValidation(), localhostOriginValidation()];
  createServer((request, response) => {
    if (!host(request, response) || !origin(request, response)) return;
    if (request.url === '/mcp') void handle(request, response);
    else response.writeHead(404).end();
  }).listen(Number(http), '127.0.0.1');
}
