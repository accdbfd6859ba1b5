/** A server that is all script, and the SDK's own client connected to it, on either revision. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpHandler, Server, type CallToolResult, type Tool } from '@modelcontextprotocol/server';
import { CAPABILITIES, merged, type Chain, type ConsentPolicy, type Proposal } from '../src/client.ts';

export type Hints = { [name: string]: unknown };
export type Answer = (args: { [name: string]: unknown }) => CallToolResult | Promise<CallToolResult>;

export const says = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });
export const fails = (text: string): CallToolResult => ({ ...says(text), isError: true });
export const leadsTo = (tool: string, args = {}, more = {}): CallToolResult => ({
  ...says('Begun.'), _meta: { nextTool: { tool, arguments: args } }, ...more,
});
export const texts = ({ content }: CallToolResult) => content.map((item) => (item.type === 'text' ? item.text : item.type));
/** What the merged result says in the client's own voice. */
export const told = (chain: Chain) => texts(merged(chain)).find((text) => /^Call \d|^The server named/.test(text)) ?? '';

/** A policy that writes down what it is asked, and answers as it is told to. */
export function asking(answer: unknown = true, again: unknown = false) {
  const asked: string[] = [];
  const answered = (question: string, answer: unknown) => (proposal: Proposal) => {
    asked.push(question);
    return (typeof answer === 'function' ? answer(proposal) : answer) as boolean;
  };
  const policy: ConsentPolicy = { allows: answered('allows', answer), allowsAgain: answered('allowsAgain', again) };
  return { ...policy, asked };
}

/** What a tool's answer becomes on the way: the SDK's server sends neither tasks nor HTTP 403 for a call. */
export const TASK = says('a task');
export const FORBIDDEN = says('HTTP 403');

async function delivered(response: Response, modern: boolean): Promise<Response> {
  const body = await response.text();
  if (body.includes('HTTP 403')) return new Response('Forbidden', { status: 403 });
  const task = body.replace(JSON.stringify(TASK).slice(1, -1), modern ? '"taskId":"1"' : '"task":{"taskId":"1"}');
  return new Response(task === body ? body || null : task.replace('"resultType":"complete"', '"resultType":"task"'), response);
}

/** Connects a client to a server with these tools. `log` has the calls, and `list` the list, which a test may change. */
export async function connected(
  tools: Record<string, Answer>,
  { advertises = true, hints = {}, modern = false }: { advertises?: boolean; hints?: Record<string, Hints>; modern?: boolean } = {},
) {
  const log: { name: string; meta?: Hints; arguments?: unknown }[] = [];
  const list = Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' as const }, annotations: hints[name] }));
  const handler = createMcpHandler(() => {
    const server = new Server({ name: 'bank', version: '1' }, { capabilities: { tools: {}, ...(advertises && CAPABILITIES) } });
    server.setRequestHandler('tools/list', () => ({ tools: list as Tool[] }));
    server.setRequestHandler('tools/call', async ({ params: { name, arguments: args, _meta: meta } }) => {
      log.push({ name, meta, arguments: args });
      return (await tools[name]?.(args ?? {})) ?? says('There is no such tool.');
    });
    return server;
  });
  const client = new Client({ name: 'desk', version: '1' }, {
    capabilities: CAPABILITIES, versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' },
  });
  const fetch = async (url: string | URL, init?: RequestInit) => delivered(await handler.fetch(new Request(url, init)), modern);
  await client.connect(new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), { fetch }));
  return { client, log, list, names: () => log.map(({ name }) => name) };
}
