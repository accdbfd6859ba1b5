/**
 * The client half as `tool-chaining-conformance client` wants it, by specs/conformance/README.md.
 *
 *     tool-chaining-conformance client -- node examples/client-under-test.ts
 *     tool-chaining-conformance client --spec-version 2025-11-25 -- node examples/client-under-test.ts --sdk 1
 *
 * It is a host that asks its user before each call but those that the server marks harmless.
 */
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, type ElicitResult, type Tool } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { callWithChaining, CAPABILITIES, merged, version1, type Chain, type ChainClient } from '../src/client.ts';

interface Context {
  tool: string;
  arguments?: { [name: string]: unknown };
  consent?: 'grant' | 'refuse';
  elicitation?: ElicitResult;
  otherServerUrl?: string;
  firstCallBy?: 'model' | 'user';
  deniedTools?: string[];
  bearerToken?: string;
  progress?: boolean;
  timeoutSeconds?: number;
  cancelUrl?: string;
}

const { values, positionals } = parseArgs({ options: { sdk: { type: 'string' } }, allowPositionals: true });
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as Context;
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === '2026-07-28';
const info = { name: 'client-under-test', version: '1.0.0' };
const capabilities = { ...CAPABILITIES, elicitation: { form: {} } };
let listChanges = 0;

async function connect(url: string): Promise<ChainClient> {
  const where = new URL(url);
  const headers: Record<string, string> = context.bearerToken ? { Authorization: `Bearer ${context.bearerToken}` } : {};
  const answer = () => context.elicitation ?? { action: 'decline' as const };
  if (values.sdk === '1') {
    const client = new Client1(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void listChanges++);
    await client.connect(new Transport1(where, { requestInit: { headers } }));
    return version1(client);
  }
  const client = new Client(info, { capabilities, versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' } });
  client.setRequestHandler('elicitation/create', answer);
  client.setNotificationHandler('notifications/tools/list_changed', () => void listChanges++);
  await client.connect(new StreamableHTTPClientTransport(where, { requestInit: { headers } }));
  return client;
}

/** The one policy of this host, for the calls of its model and for follow-up calls. */
function allow({ tool }: { tool: Tool }): boolean {
  if (context.deniedTools?.includes(tool.name)) return false;
  const { readOnlyHint, destructiveHint } = tool.annotations ?? {};
  return readOnlyHint === true || destructiveHint === false || context.consent === 'grant';
}

async function run(client: ChainClient): Promise<Chain> {
  if (context.firstCallBy === 'model') {
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === context.tool);
    if (!tool || !allow({ tool })) return { chainId: '', outcome: 'declined', results: [], followUps: [] };
  }
  const user = new AbortController();
  if (context.cancelUrl) void fetch(context.cancelUrl).then(() => user.abort(), () => undefined);
  return callWithChaining(client, { name: context.tool, arguments: context.arguments ?? {} }, {
    allow,
    signal: user.signal,
    listChanges: () => listChanges,
    ...(context.progress && { request: { onprogress: () => undefined } }),
    ...(context.timeoutSeconds !== undefined && { totalTime: context.timeoutSeconds * 1000 }),
  });
}

const client = await connect(positionals.at(-1) ?? '');
if (context.otherServerUrl) await (await connect(context.otherServerUrl)).listTools();
const chain = await run(client);
const { outcome, results, followUps } = chain;
const handedOn = results.length > 0 ? merged(chain) : { content: [] };
console.log(JSON.stringify({ ...handedOn, outcome, followUps: followUps.map(({ tool, fate }) => ({ tool, fate })) }));
process.exit(0);
