/**
 * The client half as `tool-chaining-conformance client` wants it, by specs/conformance/README.md.
 *
 *     tool-chaining-conformance client --one-process -- node examples/client-under-test.ts
 *     tool-chaining-conformance client --one-process --spec-version 2025-11-25 \
 *         -- node examples/client-under-test.ts --sdk 1
 *
 * It is a host that asks its user before each call but those that the server marks harmless.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, type ElicitResult, type Tool } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { callWithChaining, CAPABILITIES, merged, version1, type Chain, type ChainClient } from '../src/client.ts';

type Answer = 'grant' | 'refuse';

interface Context {
  tool: string;
  arguments?: { [name: string]: unknown };
  consent?: Answer;
  consentByTool?: { [name: string]: Answer | Answer[] };
  elicitation?: ElicitResult;
  otherServerUrl?: string;
  firstCallBy?: 'model' | 'user';
  deniedTools?: string[];
  trustHints?: boolean;
  bearerToken?: string;
  chains?: number;
  timeoutSeconds?: number;
  cancelUrl?: string;
}

interface Run {
  protocolVersion?: string;
  context: Context;
  url: string;
}

const { values, positionals } = parseArgs({ options: { sdk: { type: 'string' } }, allowPositionals: true });
const info = { name: 'client-under-test', version: '1.0.0' };
const capabilities = { ...CAPABILITIES, elicitation: { form: {} } };

/** Connects to a server; also returns what ends the connection. */
async function connect({ protocolVersion, context }: Run, url: string) {
  const where = new URL(url);
  const headers: Record<string, string> = context.bearerToken ? { Authorization: `Bearer ${context.bearerToken}` } : {};
  const answer = () => context.elicitation ?? { action: 'decline' as const };
  if (values.sdk === '1') {
    const client = new Client1(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(new Transport1(where, { requestInit: { headers } }));
    return { client: version1(client), close: () => client.close() };
  }
  const mode = protocolVersion === '2026-07-28' ? { pin: protocolVersion } : 'legacy';
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(new StreamableHTTPClientTransport(where, { requestInit: { headers } }));
  return { client, close: () => client.close() };
}

/** Makes the first call of a run as the context says, and follows the chain. */
async function chainOf(client: ChainClient, context: Context): Promise<Chain> {
  /** What the user answers when asked; of a list one answer after the other, and the last one for all further. */
  function agrees({ tool }: { tool: Tool }): boolean {
    let answer = context.consentByTool?.[tool.name] ?? context.consent;
    if (Array.isArray(answer)) answer = answer.length > 1 ? answer.shift() : answer[0];
    return answer === 'grant';
  }
  const denied = ({ tool }: { tool: Tool }) => context.deniedTools?.includes(tool.name) === true;
  /** The one policy of this host, for the calls of its model and for follow-up calls. */
  function allow({ tool }: { tool: Tool }): boolean {
    if (denied({ tool })) return false;
    const { readOnlyHint, destructiveHint } = tool.annotations ?? {};
    const harmless = readOnlyHint === true || destructiveHint === false;
    return (harmless && context.trustHints !== false) || agrees({ tool });
  }

  if (context.firstCallBy === 'model') {
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === context.tool);
    if (!tool || !allow({ tool })) {
      return { chainId: '', tool: context.tool, outcome: 'declined', results: [], followUps: [] };
    }
  }
  const user = new AbortController();
  const over = new AbortController();
  if (context.cancelUrl) void fetch(context.cancelUrl, over).then(() => user.abort(), () => undefined);
  const chain = await callWithChaining(client, { name: context.tool, arguments: context.arguments ?? {} }, {
    allow,
    allowAgain: (call) => !denied(call) && agrees(call),
    signal: user.signal,
    // The SDK does not notice that a stream has ended without an answer: it waits until its time is up.
    request: { timeout: (context.timeoutSeconds ?? 5) * 1_000 },
  });
  over.abort();
  return chain;
}

async function take(run: Run): Promise<void> {
  const { client, close } = await connect(run, run.url);
  const other = run.context.otherServerUrl ? await connect(run, run.context.otherServerUrl) : undefined;
  await other?.client.listTools();
  for (let before = 1; before < (run.context.chains ?? 1); before++) await chainOf(client, run.context);
  const chain = await chainOf(client, run.context);
  const { outcome, results, followUps } = chain;
  const handedOn = results.length > 0 ? merged(chain) : { content: [] };
  console.log(JSON.stringify({ ...handedOn, outcome, followUps: followUps.map(({ tool, status }) => ({ tool, status })) }));
  await other?.close();
  await close();
}

const { MCP_CONFORMANCE_RUNS, MCP_CONFORMANCE_PROTOCOL_VERSION, MCP_CONFORMANCE_CONTEXT } = process.env;
if (MCP_CONFORMANCE_RUNS === 'stdin') {
  for await (const line of createInterface(process.stdin)) await take(JSON.parse(line) as Run);
} else {
  const context = JSON.parse(MCP_CONFORMANCE_CONTEXT ?? '{}') as Context;
  await take({ protocolVersion: MCP_CONFORMANCE_PROTOCOL_VERSION, context, url: positionals.at(-1) ?? '' });
}
process.exit(0);
