/** The client half: makes a call, follows the directives of its results, and gives one result for all. */
import { randomUUID } from 'node:crypto';
import {
  InsufficientScopeError, SdkHttpError, specTypeSchemas, UnauthorizedError,
  type CallToolResult, type RequestOptions, type ServerCapabilities, type StandardSchemaV1, type Tool,
} from '@modelcontextprotocol/client';
import { invalid } from './arguments.ts';
import { Conversation, keyOf, type Call, type Doubt, type Ending } from './conversation.ts';
import { declares, EXTENSION, member, readDirective, visible, type Json } from './directive.ts';
import { quoted, type Chain, type FollowUp, type Outcome } from './result.ts';

export { Conversation } from './conversation.ts';
export { CAPABILITIES } from './directive.ts';
export { merged, type Chain, type FollowUp, type Outcome } from './result.ts';

type Params = { name: string; arguments?: Json; _meta?: Json };

/** What is needed of a client: the `Client` of SDK version 2 has it, and `version1` makes it of the other. */
export interface ChainClient {
  /** Makes a call on revision 2026-07-28. */
  callTool(params: Params, options?: RequestOptions): Promise<CallToolResult>;
  /** Lists the tools, and makes a call on revision 2025-11-25, where `callTool` does not know a task. */
  request<T extends StandardSchemaV1>(
    request: { method: 'tools/list'; params: { cursor?: string } } | { method: 'tools/call'; params: Params },
    result: T,
    options?: RequestOptions,
  ): Promise<StandardSchemaV1.InferOutput<T>>;
  getProtocolEra(): 'legacy' | 'modern' | undefined;
  getServerCapabilities(): ServerCapabilities | undefined;
}

/** A follow-up call that the server asks for, as the host's policy and its user get to see it. */
export interface Proposal {
  tool: Tool;
  arguments: Json;
  /** The server's words for people; never for a model (TC-C-53). */
  title?: string;
}

/** Decides for the host on follow-up calls, as on the calls of its model. Only `true` is a yes (TC-C-20). */
export interface ConsentPolicy {
  /** Whether the host makes this call. Throws `NobodyToAsk` if only a person could decide, and there is none. */
  allows(proposal: Proposal): boolean | Promise<boolean>;
  /**
   * Asked in place of `allows` about a tool in doubt: whether a person who knows of the doubt agrees (TC-C-55).
   * Absent: no such call is made.
   */
  allowsAgain?(proposal: Proposal): boolean | Promise<boolean>;
  /** Whether the user or the host trusts this server's hints. Then a tool that they call read-only is never in doubt. */
  trustsHints?: boolean;
}

/** A policy throws this if nobody can be asked. The merged result then suggests the call to the model. */
export class NobodyToAsk extends Error {}

/** Allows what the hints of a trusted server call harmless, for a client without a person (TC-C-21). */
export const trustHints: ConsentPolicy = {
  trustsHints: true,
  allows: ({ tool: { annotations } }) => {
    const closed = annotations?.destructiveHint === false && annotations.openWorldHint === false;
    if (annotations?.readOnlyHint !== true && !closed) throw new NobodyToAsk();
    return true;
  },
};

export interface FollowerOptions {
  /** Asked before each follow-up call. Absent: no follow-up call is made (TC-C-21). */
  consent?: ConsentPolicy;
  /** The record of calls that could be made twice (TC-C-55). Absent: a new one. */
  conversation?: Conversation;
  /** Whether a server is followed that is not known to advertise the extension (TC-C-03). */
  followUnadvertised?: boolean;
  /** The most calls of one chain, the first included (TC-C-09). */
  limit?: number;
  /** Gets the mistakes of the policy. */
  mistake?: (why: string, error?: unknown) => void;
}

/** Ends the chain before its next call; the message is for the model too. */
class End extends Error {
  readonly outcome: Outcome;
  readonly suggested: boolean;
  constructor(outcome: Outcome, reason: string, { cause, suggested = false }: { cause?: string; suggested?: boolean } = {}) {
    super(reason, { cause });
    this.outcome = outcome;
    this.suggested = suggested;
  }
}

/**
 * A client that follows chains: one object for each connection.
 *
 * A second conversation on the same connection is another `new Follower(client, options)`. A new connection in the same
 * conversation is `new Follower(newClient, { ...options, conversation: follower.conversation })`.
 */
export class Follower {
  readonly client: ChainClient;
  readonly conversation: Conversation;
  readonly options: FollowerOptions;

  constructor(client: ChainClient, options: FollowerOptions = {}) {
    if (!client.getProtocolEra) throw new TypeError('client is no Client of SDK version 2: make one by version1(client)');
    if (options.consent && !options.consent.allows) throw new TypeError('consent has no method allows');
    if (!((options.limit ?? 1) >= 1)) throw new RangeError(`limit counts the first call too: ${options.limit} is less than 1`);
    this.client = client;
    this.conversation = options.conversation ?? new Conversation();
    this.options = options;
  }

  /**
   * Calls a tool, and follows the chain to its end. Whatever happens, what came back is in the answer (TC-C-24).
   *
   * `request` holds for each request of the chain, such as `timeout`. Its `signal` ends the chain: the outcome is
   * `cancelled`, or `failed` if an `AbortSignal.timeout` did it.
   */
  async callTool(params: Params, request: RequestOptions = {}): Promise<Chain> {
    const signal = request.signal ?? new AbortController().signal;
    const over = new AbortController();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over.signal });
    });
    aborted.catch(() => undefined);
    const unlessAborted: Unless = (value) => Promise.race([aborted, value]);
    const chain: Chain = {
      chainId: randomUUID(), tool: params.name, arguments: params.arguments ?? {}, outcome: 'completed',
      followed: this.options.followUnadvertised === true || declares(this.client.getServerCapabilities(), this.#modern),
      results: [], followUps: [],
    };
    try {
      await this.#follow(chain, params._meta ?? {}, { ...request, signal }, unlessAborted);
    } catch (error) {
      failed(chain, error, signal);
    } finally {
      over.abort();
    }
    if (signal.aborted && !timedOut(signal)) this.notDelivered(chain);
    return chain;
  }

  /**
   * Records that the result of a chain did not reach whoever asked for it (TC-C-55). `callTool` does so if its signal
   * cancels the chain. Call it if you drop a result for another reason, for example because your client is gone.
   */
  notDelivered({ tool, arguments: args, followUps }: Chain): void {
    const first = keyOf(tool, args);
    for (const call of followUps)
      if (call.status === 'made') this.conversation.add({ tool: call.tool, key: keyOf(call.tool, call.arguments), first });
  }

  get #modern(): boolean {
    return this.client.getProtocolEra() === 'modern';
  }

  async #follow(chain: Chain, meta: Json, request: RequestOptions & { signal: AbortSignal }, unlessAborted: Unless): Promise<void> {
    const { signal } = request;
    const first = keyOf(chain.tool, chain.arguments);
    const made = new Set([first]);

    signal.throwIfAborted();
    const firstCall = { tool: chain.tool, key: first, first };
    let result = await this.#call(chain, chain, meta, request, this.conversation.start(firstCall));
    for (;;) {
      const next = readDirective(result._meta);
      if (next.status === 'absent') return;
      if (!chain.followed) throw new End('declined', 'the server does not advertise tool chaining');
      if (next.status === 'malformed') throw new End('malformed_directive', next.why);
      const { tool: name, arguments: args, title } = next;
      const followUp: FollowUp = { tool: name, arguments: args, ...(title && { title }), status: 'not_made', listed: false };
      chain.followUps.push(followUp);
      signal.throwIfAborted();
      const { limit = 5 } = this.options;
      if (chain.results.length >= limit) throw new End('limit_reached', `${limit} calls were made, which is the limit`);
      const tool = await find(this.client, name, request);
      if (!tool) throw new End('unknown_tool', 'the server does not list it');
      followUp.listed = true;
      const why = invalid(tool.inputSchema ?? {}, args);
      if (why !== undefined) throw new End('invalid_arguments', 'its arguments are not valid', { cause: why });
      const call = { tool: name, key: keyOf(name, args), first };
      if (made.has(call.key)) throw new End('cycle', 'this chain already made the same call with the same arguments');
      made.add(call.key);
      if (!visible(tool)) throw new End('declined', 'it is not meant for the model to call');
      const started = await this.#agreed({ tool, arguments: args, ...(title && { title }) }, call, unlessAborted);
      followUp.status = 'unknown'; // from here on it may have been sent
      meta = Object.fromEntries(Object.entries(meta).filter(([name]) => OF_EVERY_CALL.test(name)));
      result = await this.#call(chain, followUp, meta, request, started, this.#trusted(tool, 'readOnlyHint', 'idempotentHint'));
      followUp.status = 'made';
    }
  }

  async #call(
    chain: Chain, { tool, arguments: args }: { tool: string; arguments: Json }, meta: Json, request: RequestOptions,
    ended: (ending: Ending) => void, mayRepeat = chain.followUps.length === 0,
  ): Promise<CallToolResult> {
    const provenance = {
      chainId: chain.chainId, level: chain.results.length + 1,
      ...(chain.followUps.length > 0 && { previousTool: chain.followUps.at(-2)?.tool ?? chain.tool }),
    };
    let ending: Ending = 'unknown';
    try {
      const params = { name: tool, arguments: args, _meta: { ...meta, [EXTENSION]: provenance } };
      const result = this.#modern
        ? await this.client.callTool(params, request)
        : await this.client.request({ method: 'tools/call', params }, specTypeSchemas.CallToolResult, request);
      // A task goes on, and its server knows of it: only a repetition is in doubt.
      if (!this.#modern && (member(result, 'task') ?? null) !== null) {
        ending = 'doubtful';
        throw new Error('it was answered with a task, for whose result this client does not wait');
      }
      // SDK version 2 itself refuses a `resultType` that it does not know, on revision 2026-07-28.
      const kind = member(result, 'resultType');
      if (typeof kind === 'string' && kind !== 'complete') throw new Error('its answer is no complete result');
      ending = !result.isError ? 'succeeded' : mayRepeat ? 'failed' : 'doubtful';
      chain.results.push(result);
      return result;
    } catch (error) {
      if (wasRefused(error)) ending = 'refused';
      throw error;
    } finally {
      ended(ending);
    }
  }

  /**
   * Asks for consent, and records that the call starts. Nothing is awaited between the last look at the record and its
   * entry there, so no other chain can start an equal call in between.
   */
  async #agreed(proposal: Proposal, call: Call, unlessAborted: Unless): Promise<(ending: Ending) => void> {
    let known: Doubt[] | undefined;
    for (;;) {
      for (let running; (running = this.conversation.running(call)); ) await unlessAborted(running);
      const doubts = this.#trusted(proposal.tool, 'readOnlyHint') ? [] : this.conversation.doubts(call);
      if (known && doubts.every((doubt) => known?.includes(doubt))) return this.conversation.start(call, known);
      await this.#ask(proposal, doubts.length > 0, unlessAborted);
      known = doubts;
    }
  }

  /** Asks the host's policy. Throws unless it says yes. */
  async #ask(proposal: Proposal, inDoubt: boolean, unlessAborted: Unless): Promise<void> {
    const { consent, mistake = console.error } = this.options;
    let answer: unknown;
    try {
      if (!consent) throw new NobodyToAsk();
      answer = await unlessAborted(!inDoubt ? consent.allows(proposal) : consent.allowsAgain ? consent.allowsAgain(proposal) : false);
    } catch (error) {
      if (error instanceof NobodyToAsk)
        throw new End('declined', 'nobody could be asked to allow it', { suggested: !inDoubt });
      await unlessAborted(undefined); // otherwise the policy failed, and has not agreed
      mistake('The consent policy threw, so the call is not made.', error);
      answer = false;
    }
    if (answer === true) return;
    if (answer !== false) mistake(`The consent policy answered ${typeof answer}. Only true is a yes, so the call is not made.`);
    const reason = inDoubt
      ? 'it is not known whether an earlier call took effect, and nobody agreed to it'
      : 'the host did not agree';
    throw new End('declined', reason);
  }

  /** Whether trusted hints say one of these things of a tool. */
  #trusted({ annotations }: Tool, ...hints: ('readOnlyHint' | 'idempotentHint')[]): boolean {
    return this.options.consent?.trustsHints === true && hints.some((hint) => annotations?.[hint] === true);
  }
}

type Unless = <T>(value: T | Promise<T>) => Promise<T>;

const timedOut = (signal: AbortSignal) => signal.reason?.name === 'TimeoutError';

/** Members of the first call's `_meta` that belong to every call: those of the protocol, and those of a trace. */
const OF_EVERY_CALL = /^(io\.modelcontextprotocol\/.*|traceparent|tracestate|baggage)$/s;

/** Writes into a chain how it ended, where that was not with a result that names no further tool. */
function failed(chain: Chain, error: unknown, signal: AbortSignal): void {
  const last = chain.followUps.at(-1);
  const isEnd = error instanceof End;
  const message = error instanceof Error ? error.message || error.name : String(error);
  let reason = isEnd ? message : quoted(message); // it may be the server's
  chain.outcome = isEnd ? error.outcome : 'failed';
  if (signal.aborted) [chain.outcome, reason] = timedOut(signal)
    ? ['failed', 'the time allowed for it ran out']
    : ['cancelled', 'the chain was cancelled'];
  chain.detail = isEnd && error.cause !== undefined ? `${reason}: ${error.cause}` : reason;
  chain.error = error;
  if (!last || last.status === 'made') return;
  if (wasRefused(error)) last.status = 'not_made';
  if (!last.listed) reason += "; its name is left out, since no tool list of the server confirmed it";
  last.detail = reason;
  if (isEnd && error.suggested && !signal.aborted) last.suggested = true;
}

/**
 * Whether the server refused a call before it acted: for want of authorization, for its headers, for a capability that
 * the client lacks, or for its version. No other error proves that: a server may answer -32602 when it has paid and
 * then fails on its own data.
 */
const wasRefused = (error: unknown): boolean =>
  error instanceof UnauthorizedError ||
  error instanceof InsufficientScopeError ||
  (error instanceof SdkHttpError && [401, 403].includes(error.status)) ||
  (error instanceof Error && 'code' in error && [-32020, -32021, -32022].includes(error.code as number));

/** Takes a result as it is, so that one malformed tool does not cost the others. */
const AS_IT_IS: StandardSchemaV1<unknown, { tools?: unknown; nextCursor?: unknown }> = {
  '~standard': { version: 1, vendor: 'tool-chaining', validate: (value) => ({ value: value as object }) },
};

/**
 * Reads the list anew, so that nothing is decided by one from before the directive (TC-C-12, TC-C-13). Where a page
 * cannot be read, the hints of the pages before it do not count. A name that is listed twice with differences is not listed.
 */
async function find(client: ChainClient, name: string, request: RequestOptions): Promise<Tool | undefined> {
  let found: Tool[] = [];
  const seen = new Set<unknown>();
  let cursor: unknown;
  try {
    do {
      if (seen.has(cursor) || seen.size === 100) throw new Error('the pages of the tool list do not end');
      seen.add(cursor);
      const params = typeof cursor === 'string' ? { cursor } : {};
      const page = await client.request({ method: 'tools/list', params }, AS_IT_IS, request);
      if (!Array.isArray(page.tools)) throw new Error('the list has no array of tools');
      found.push(...page.tools.filter((tool) => member(tool, 'name') === name));
      cursor = page.nextCursor;
    } while (typeof cursor === 'string');
  } catch (error) {
    if (found.length === 0 || request.signal?.aborted) throw error;
    found = found.map(({ annotations: _, ...tool }) => tool);
  }
  return new Set(found.map((tool) => keyOf('', tool))).size === 1 ? found[0] : undefined;
}

/** What SDK version 1 has of a `ChainClient`; it speaks revision 2025-11-25 and none later. */
interface Version1Client {
  callTool(params: Params, schema?: undefined, options?: object): Promise<unknown>;
  listTools(params?: { cursor?: string }, options?: object): Promise<unknown>;
  getServerCapabilities(): unknown;
}

/** Returns the `ChainClient` of a `Client` of `@modelcontextprotocol/sdk` (version 1). */
export const version1 = (client: Version1Client): ChainClient => ({
  callTool: async (params, options) => (await client.callTool(params, undefined, options)) as CallToolResult,
  request: async ({ method, params }, _, options) =>
    method === 'tools/call' ? client.callTool(params, undefined, options) : client.listTools(params, options),
  getProtocolEra: () => 'legacy',
  getServerCapabilities: () => client.getServerCapabilities() as ServerCapabilities | undefined,
});
