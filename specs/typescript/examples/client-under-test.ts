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
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client, StreamableHTTPClientTransport, type ElicitResult, type StandardSchemaV1, type Tool } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  CAPABILITIES, Follower, merged, NobodyToAsk, trustHints, version1, type Chain, type ChainClient, type ConsentPolicy, type Proposal,
} from '../src/client.ts';

type Answer = 'grant' | 'refuse';

interface Call {
  tool: string;
  arguments?: { [name: string]: unknown };
}

interface Context extends Call {
  consent?: Answer | 'nobody';
  consentByTool?: { [name: string]: Answer | Answer[] };
  elicitation?: ElicitResult;
  otherServerUrl?: string;
  firstCallBy?: 'model' | 'user';
  deniedTools?: string[];
  trustHints?: boolean;
  bearerToken?: string;
  furtherCalls?: Call[];
  atOnce?: boolean;
  timeoutSeconds?: number;
  cancelUrl?: string;
  cancelledUrl?: string;
  again?: string[];
  answersAfterMs?: number;
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
  // After a question the server has begun, whatever it refuses then. The error of the SDK does not show it (TC-C-39).
  let asked = false;
  client.setRequestHandler('elicitation/create', () => ((asked = true), answer()));
  const callTool = client.callTool.bind(client);
  client.callTool = async (...given) => {
    asked = false;
    return callTool(...given).catch((error: unknown) => Promise.reject(asked ? new Error(String(error)) : error));
  };
  await client.connect(new StreamableHTTPClientTransport(where, { requestInit: { headers } }));
  return { client, close: () => client.close() };
}

/**
 * Reads the first page of a list as it is. On revision 2026-07-28 the SDK refuses a whole list for one malformed hint:
 * then the model has no tools.
 */
async function listed(client: ChainClient): Promise<Tool[]> {
  const asItIs: StandardSchemaV1<unknown, { tools: Tool[] }> = {
    '~standard': { version: 1, vendor: info.name, validate: (value) => ({ value: value as { tools: Tool[] } }) },
  };
  return client.request({ method: 'tools/list', params: {} }, asItIs).then(({ tools }) => tools, () => []);
}

/** The one policy of this host, for the calls of its model and for follow-up calls. */
class Policy implements ConsentPolicy {
  trustsHints: boolean;
  #context: Context;

  constructor(context: Context) {
    this.trustsHints = context.trustHints !== false;
    this.#context = context;
  }

  allows(proposal: Proposal): boolean | Promise<boolean> {
    if (this.#denies(proposal)) return false;
    return (this.trustsHints && isHarmless(proposal)) || this.#agrees(proposal);
  }

  allowsAgain(proposal: Proposal): boolean | Promise<boolean> {
    return !this.#denies(proposal) && this.#agrees(proposal);
  }

  mayRepeat({ tool }: Proposal): boolean {
    return this.#context.again?.includes(tool.name) === true;
  }

  #denies({ tool }: Proposal): boolean {
    return this.#context.deniedTools?.includes(tool.name) === true;
  }

  /** What the user answers when asked; of a list one answer after the other, and the last one for all further. */
  async #agrees({ tool }: Proposal): Promise<boolean> {
    const { consent, consentByTool, answersAfterMs } = this.#context;
    await sleep(answersAfterMs);
    let answer = consentByTool?.[tool.name] ?? consent;
    if (answer === 'nobody') throw new NobodyToAsk();
    if (Array.isArray(answer)) answer = answer.length > 1 ? answer.shift() : answer[0];
    return answer === 'grant';
  }
}

/** Whether the hints alone allow a call, as they do for a client without a person. */
function isHarmless(proposal: Proposal): boolean {
  try {
    return trustHints.allows(proposal) === true;
  } catch {
    return false;
  }
}

/** Makes the calls of a run, each of which begins a chain, and returns the last chain. */
async function chainOf(client: ChainClient, context: Context): Promise<Chain | undefined> {
  const consent = new Policy(context);
  if (context.firstCallBy === 'model') {
    const tool = (await listed(client)).find(({ name }) => name === context.tool);
    if (!tool || !(await consent.allows({ tool, arguments: context.arguments ?? {} }))) return undefined;
  }
  const follower = new Follower(client, { consent });
  // The SDK does not notice that a stream has ended without an answer: it waits until its time is up.
  const timeout = (context.timeoutSeconds ?? 5) * 1_000;
  const user = new AbortController();
  const over = new AbortController();
  if (context.cancelUrl) void fetch(context.cancelUrl, over).then(() => user.abort(), () => undefined);
  const begin = ({ tool, arguments: args = {} }: Call, signal?: AbortSignal) =>
    follower.callTool({ name: tool, arguments: args }, { timeout, signal });
  const chains = [begin(context, user.signal)];
  if (context.cancelledUrl) {
    follower.notDelivered(await chains[0]!); // The user cancels now, too late.
    await fetch(context.cancelledUrl);
  }
  for (const call of context.furtherCalls ?? []) {
    if (!context.atOnce) await chains.at(-1);
    chains.push(begin(call));
  }
  await Promise.all(chains);
  over.abort();
  return chains.at(-1);
}

async function take(run: Run): Promise<void> {
  const { client, close } = await connect(run, run.url);
  const other = run.context.otherServerUrl ? await connect(run, run.context.otherServerUrl) : undefined;
  if (other) await listed(other.client);
  const chain = await chainOf(client, run.context);
  const handedOn = chain && chain.results.length > 0 ? merged(chain) : { content: [] };
  const followUps = chain?.followUps.map(({ tool, status }) => ({ tool, status })) ?? [];
  console.log(JSON.stringify({ isError: false, ...handedOn, outcome: chain?.outcome ?? 'declined', followUps }));
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
