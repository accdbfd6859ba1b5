/** The client half: makes a call, follows the directives of its results, and gives one result for all. */
import { randomUUID } from 'node:crypto';
import {
  InsufficientScopeError, ProtocolError, SdkHttpError, UnauthorizedError,
  type CallToolResult, type RequestOptions, type ServerCapabilities, type Tool,
} from '@modelcontextprotocol/client';
import { invalid } from './arguments.ts';
import { canonical, declares, EXTENSION, isObject, isWords, member, readDirective, visible, type Json } from './directive.ts';

export { CAPABILITIES } from './directive.ts';

type Params = { name: string; arguments?: Json; _meta?: Json };

/** What is needed of a client: the `Client` of SDK version 2 has it, and `version1` makes it of the other. */
export interface ChainClient {
  callTool(params: Params, options?: RequestOptions): Promise<CallToolResult>;
  listTools(
    params?: { cursor?: string },
    options?: RequestOptions & { cacheMode?: 'refresh' },
  ): Promise<{ tools: Tool[]; nextCursor?: string | undefined }>;
  getProtocolEra(): 'legacy' | 'modern' | undefined;
  getServerCapabilities(): ServerCapabilities | undefined;
}

/** A follow-up call that the server asks for, as the host's policy and its user get to see it. */
export interface Proposal {
  tool: Tool;
  arguments: Json;
  /** The server's words for people; never for a model (TC-C-40). */
  title?: string;
}

export interface ChainOptions {
  /**
   * What decides on the calls of the host's model, consent included: it decides on follow-up calls too
   * (TC-C-20, TC-C-42). Absent: nobody can be asked, and `trustHints` says what is called (TC-C-21).
   */
  allow?: (proposal: Proposal) => boolean | Promise<boolean>;
  /**
   * Decides in place of `allow` on a call of a tool whose last call has an unknown effect: it applies the same
   * policy, and asks the user in every case (TC-C-55). Absent: no such call is made, but of a tool that trusted
   * hints call read-only.
   */
  allowAgain?: (proposal: Proposal) => boolean | Promise<boolean>;
  /** The record of a conversation that outlives the client. Absent: one for this client. */
  inDoubt?: CallsInDoubt;
  /** Whether this server is trusted to tell what its tools do. */
  trustHints?: boolean;
  /** Whether a server is followed that is not known to advertise the extension (TC-C-03). */
  followUnadvertised?: boolean;
  /** The most calls of one chain, the first included (TC-C-09). */
  limit?: number;
  /** Ends the chain when aborted: outcome `cancelled`, or `failed` if an `AbortSignal.timeout` did it. */
  signal?: AbortSignal;
  /** For each request of the chain, such as `timeout`. */
  request?: RequestOptions;
}

export type Outcome =
  | 'cancelled' | 'failed' | 'completed' | 'malformed_directive' | 'limit_reached'
  | 'unknown_tool' | 'invalid_arguments' | 'cycle' | 'declined';

export interface FollowUp {
  tool: string;
  arguments: Json;
  title?: string;
  /** `unknown`: it was started, and no result came back. */
  status: 'made' | 'not_made' | 'unknown';
  /** Whether the tool was found in the server's list; no other name is told a model (TC-C-53). */
  listed: boolean;
}

export interface Chain {
  chainId: string;
  /** The tool that was called first. */
  tool: string;
  outcome: Outcome;
  /** Why it ended so, for people; `merged` has what a model is told. */
  detail?: string;
  /** The results of the calls, in their order. */
  results: CallToolResult[];
  /** The follow-up calls, and at the end the one that was not made. */
  followUps: FollowUp[];
  /** What was thrown, where a call brought no result. */
  error?: unknown;
}

class End extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome, detail: string) {
    super(detail);
    this.outcome = outcome;
  }
}

type Effect = FollowUp['status'];

/**
 * The tools of one server whose last call has an unknown effect, or still runs (TC-C-55).
 *
 * It belongs to the host's conversation with its user: keep one object, also over a new connection.
 */
export class CallsInDoubt {
  #running: string[] = [];
  #lost = new Map<string, object>();

  has(tool: string): boolean {
    return this.#running.includes(tool) || this.#lost.has(tool);
  }

  /** Records that a call starts; the function that it returns is to be called when the call has ended. */
  start(tool: string): (effect: Effect) => void {
    const lostBefore = this.#lost.get(tool);
    this.#running.push(tool);
    return (effect) => {
      this.#running.splice(this.#running.indexOf(tool), 1);
      if (effect === 'unknown') this.#lost.set(tool, {});
      // A result settles the doubt about the calls that were lost before this one started.
      else if (effect === 'made' && this.#lost.get(tool) === lostBefore) this.#lost.delete(tool);
    };
  }
}

const OF_CLIENT = new WeakMap<ChainClient, CallsInDoubt>();

/** Makes a call and follows its chain to the end. Whatever happens, what came back is in the answer (TC-C-24). */
export async function callWithChaining(client: ChainClient, first: Params, options: ChainOptions = {}): Promise<Chain> {
  const { limit = 5, signal = new AbortController().signal } = options;
  const modern = client.getProtocolEra() === 'modern';
  const request = { ...options.request, signal };
  const over = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over.signal });
  });
  aborted.catch(() => undefined);
  const chain: Chain = { chainId: randomUUID(), tool: first.name, outcome: 'completed', results: [], followUps: [] };
  const made = new Set<string>();
  const inDoubt = options.inDoubt ?? OF_CLIENT.get(client) ?? new CallsInDoubt();
  OF_CLIENT.set(client, inDoubt);

  async function call(params: Params): Promise<CallToolResult> {
    made.add(callKey(params.name, params.arguments));
    const ended = inDoubt.start(params.name);
    let effect: Effect = 'unknown';
    try {
      const result = await client.callTool(params, request);
      // SDK version 2 itself refuses a `resultType` that it does not know, on revision 2026-07-28.
      if ((member(result, 'resultType') ?? 'complete') !== 'complete' || (!modern && 'task' in result))
        throw new End('failed', 'the call was answered, and not with a complete result');
      effect = 'made';
      chain.results.push(result);
      return result;
    } catch (error) {
      if (wasRefused(error)) effect = 'not_made';
      throw error;
    } finally {
      ended(effect);
    }
  }

  /** Reads the list anew, so that no check is made against one from before the directive (TC-C-12, TC-C-13). */
  async function find(name: string): Promise<Tool> {
    const seen = new Set<string | undefined>();
    let cursor: string | undefined;
    do {
      if (seen.has(cursor)) throw new End('failed', 'the tools cannot be listed: their pages do not end');
      seen.add(cursor);
      const page = await client.listTools(cursor === undefined ? undefined : { cursor }, { ...request, cacheMode: 'refresh' });
      const tool = page.tools.find((tool) => tool.name === name);
      if (tool) return tool;
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    throw new End('unknown_tool', 'the server does not list it');
  }

  async function agreed(policy: ChainOptions['allow'], proposal: Proposal): Promise<boolean> {
    try {
      return policy !== undefined && (await Promise.race([aborted, policy(proposal)]));
    } catch {
      signal.throwIfAborted(); // otherwise the policy failed, and has not agreed
      return false;
    }
  }

  async function allowed(proposal: Proposal): Promise<boolean> {
    if (options.allow) return agreed(options.allow, proposal);
    const { readOnlyHint, destructiveHint } = proposal.tool.annotations ?? {};
    return options.trustHints === true && (readOnlyHint === true || destructiveHint === false);
  }

  async function allowedAgain(proposal: Proposal): Promise<boolean> {
    if (options.allow || options.allowAgain) return agreed(options.allowAgain, proposal);
    return options.trustHints === true && proposal.tool.annotations?.readOnlyHint === true;
  }

  /** Goes down the table of outcomes, until only consent is missing. */
  async function check(next: FollowUp): Promise<Proposal> {
    if (chain.results.length >= limit) throw new End('limit_reached', `a chain has at most ${limit} calls`);
    const tool = await find(next.tool);
    next.listed = true;
    const why = invalid(tool.inputSchema, next.arguments);
    if (why !== undefined) throw new End('invalid_arguments', why);
    if (made.has(callKey(next.tool, next.arguments))) throw new End('cycle', 'the chain has made this call');
    if (!visible(tool)) throw new End('declined', 'the tool is hidden from the model');
    if (!options.followUnadvertised && !declares(client.getServerCapabilities(), modern))
      throw new End('declined', 'the server did not advertise the extension');
    return { tool, arguments: next.arguments, ...(next.title && { title: next.title }) };
  }

  try {
    signal.throwIfAborted();
    let previousTool = first.name;
    let result = await call(first);
    for (;;) {
      const next = readDirective(result._meta);
      if (next.status === 'absent') return chain;
      if (next.status === 'malformed') throw new End('malformed_directive', next.why);
      const { tool, arguments: args, title } = next;
      const followUp: FollowUp = { tool, arguments: args, ...(title && { title }), status: 'not_made', listed: false };
      chain.followUps.push(followUp);
      signal.throwIfAborted();
      const proposal = await check(followUp);
      if (!inDoubt.has(tool) && !(await allowed(proposal))) throw new End('declined', 'the policy or the user did not agree');
      // A chain beside this one may have called it meanwhile. Nothing is awaited between this look and the call.
      if (inDoubt.has(tool) && !(await allowedAgain(proposal)))
        throw new End('declined', 'whether an earlier call of the tool took effect is not known');
      signal.throwIfAborted();
      followUp.status = 'unknown'; // from here on it may have been sent
      const provenance = { chainId: chain.chainId, level: chain.results.length + 1, previousTool };
      result = await call({ name: tool, arguments: args, _meta: { [EXTENSION]: provenance } });
      followUp.status = 'made';
      previousTool = tool;
    }
  } catch (error) {
    const last = chain.followUps.at(-1);
    if (last?.status === 'unknown' && wasRefused(error)) last.status = 'not_made';
    chain.outcome = error instanceof End ? error.outcome : 'failed';
    if (signal.aborted) chain.outcome = signal.reason?.name === 'TimeoutError' ? 'failed' : 'cancelled';
    return { ...chain, detail: error instanceof Error ? error.message : String(error), error };
  } finally {
    over.abort();
  }
}

/** The two things that make a call what it is. What RFC 8785 cannot write equals no directive. */
function callKey(tool: string, args: Json = {}): string {
  try {
    return canonical([tool, args]);
  } catch {
    return '';
  }
}

/**
 * Whether the server refused a call before it acted: for want of authorization, or for version or headers. No
 * other error proves that: a server may answer -32602 when it has paid and then fails on its own data.
 */
const wasRefused = (error: unknown): boolean =>
  error instanceof UnauthorizedError ||
  error instanceof InsufficientScopeError ||
  (error instanceof SdkHttpError && [401, 403].includes(error.status)) ||
  (error instanceof ProtocolError && [-32020, -32022].includes(error.code));

/** Why the last follow-up call was not made: for a model, so without any words of the server's. */
const REASONS: Partial<Record<Outcome, string>> = {
  limit_reached: 'as many calls were made as are allowed',
  unknown_tool: 'the server does not list its tool',
  invalid_arguments: 'its arguments are not valid',
  cycle: 'the same call was made before',
  declined: 'the policy or the user did not agree',
  cancelled: 'the user cancelled',
  failed: 'the server refused it, its tools could not be listed, or the time was up',
};

/** Says what became of each follow-up call, in the client's own words (TC-C-33, TC-C-52, TC-C-53). */
function report({ tool: first, outcome, followUps, results }: Chain): string[] {
  const said = followUps.map(({ tool, status, listed }, index) => {
    const call = `Call ${index + 2}, ${listed ? quoted(tool) : 'of a further tool'},`;
    if (status === 'made' && results[index + 1]?.isError) return `${call} was made, and its result is an error.`;
    if (status === 'made') return `${call} was made; what it returned stands above. Do not repeat it.`;
    if (status === 'not_made') return `${call} was not made: ${REASONS[outcome]}.`;
    return (
      `${call} was started, and whether it took effect is not known. Do not repeat it without asking the user. ` +
      `Calling ${quoted(first)} again could make this call again.`
    );
  });
  if (outcome === 'malformed_directive') said.push('The server named one more that could not be read; it was not made.');
  return said;
}

/** A name as a JSON string, which nobody takes for the client's own words. */
const quoted = (name: string) => JSON.stringify([...name].slice(0, 128).join(''));

/**
 * The chain as the one result of the one call that a model, a View or a host upstream made (TC-C-32 to TC-C-36).
 *
 * It has the content of every step, and at the end what became of each follow-up call. Throws what the first
 * call threw, if that brought no result.
 */
export function merged(chain: Chain): CallToolResult {
  const [first, ...later] = chain.results.map(withoutWords);
  if (!first) throw chain.error;
  const said = report(chain);
  const content = [first, ...later].flatMap((result) => result.content);
  if (said.length > 0) {
    const text = `Follow-up calls by the client, as the server directed: ${said.join(' ')}`;
    content.push({ type: 'text', text, annotations: { audience: ['assistant'] } });
  }
  const { nextTool: _, ...meta } = first._meta ?? {};
  const followUps = said.map((one, index) => (later[index] ? `${one} It returned: ${forModel(later[index])}` : one));
  const own = first.structuredContent;
  const structuredContent = followUps.length === 0 ? own
    : isObject(own) && !Object.hasOwn(own, 'followUps') ? { ...own, followUps } : undefined;
  return {
    content,
    isError: chain.results.some(({ isError }) => isError) || chain.followUps.some(({ status }) => status === 'unknown'),
    ...(structuredContent !== undefined && { structuredContent }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

/** A result without the words about its directive (TC-C-35): a marked item, and `nextStep` beside a directive. */
function withoutWords(result: CallToolResult, index: number): CallToolResult {
  let content = result.content.filter((item) => !isWords(item));
  let structuredContent = result.structuredContent;
  if (result._meta?.nextTool !== undefined && typeof member(member(structuredContent, 'nextStep'), 'tool') === 'string') {
    const { nextStep: _, ...rest } = structuredContent as Json;
    structuredContent = rest;
  }
  // The merged result has the structured content of the first call alone.
  if (index > 0 && content.length === 0 && structuredContent !== undefined)
    content = [{ type: 'text', text: JSON.stringify(structuredContent) }];
  return { ...result, content, structuredContent };
}

/** What a result says to a model, as one text: for hosts that show structured content alone (TC-C-36). */
const forModel = ({ content }: CallToolResult) =>
  content
    .filter((item) => item.annotations?.audience?.join() !== 'user')
    .map((item) => (item.type === 'text' ? item.text : `[${item.type}]`))
    .join('\n');

/** What SDK version 1 has of a `ChainClient`; it speaks revision 2025-11-25 and none later. */
interface Version1Client {
  callTool(params: Params, schema?: undefined, options?: object): Promise<unknown>;
  listTools(params?: { cursor?: string }, options?: object): Promise<unknown>;
  getServerCapabilities(): unknown;
}

const VERSION_1 = new WeakMap<Version1Client, ChainClient>();

/** Returns the `ChainClient` of a `Client` of `@modelcontextprotocol/sdk` (version 1), always the same one. */
export function version1(client: Version1Client): ChainClient {
  const known = VERSION_1.get(client) ?? {
    callTool: async (params, options) => (await client.callTool(params, undefined, options)) as CallToolResult,
    listTools: async (params, options) => (await client.listTools(params, options)) as { tools: Tool[] },
    getProtocolEra: () => 'legacy',
    getServerCapabilities: () => client.getServerCapabilities() as ServerCapabilities | undefined,
  };
  VERSION_1.set(client, known);
  return known;
}
