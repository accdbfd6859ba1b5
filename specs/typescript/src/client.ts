/** The client half: makes a call, follows the directives of its results, and gives one result for all. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DEFAULT_REQUEST_TIMEOUT_MSEC, InsufficientScopeError, SdkHttpError, specTypeSchemas, UnauthorizedError,
  type CallToolResult, type RequestOptions, type ServerCapabilities, type StandardSchemaV1, type Tool,
} from '@modelcontextprotocol/client';
import { invalid } from './arguments.ts';
import { callOf, Conversation, type Answer, type Call, type Chained, type Entry } from './conversation.ts';
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
  /**
   * Whether the user agreed beforehand that this tool may be called again, such as one that gets a new token. Then it is
   * never in doubt, and `allows` is asked as usual (TC-C-55). Absent: no tool.
   */
  mayRepeat?(proposal: Proposal): boolean | Promise<boolean>;
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
  /** The record of calls that another chain must not repeat unasked (TC-C-55). Absent: a new one. */
  conversation?: Conversation;
  /** Whether a server is followed that is not known to advertise the extension (TC-C-03). */
  followUnadvertised?: boolean;
  /** The most calls of one chain, the first included (TC-C-09). */
  limit?: number;
}

/** Ends the chain before its next call; the message is for the model too. */
class End extends Error {
  readonly outcome: Outcome;
  constructor(outcome: Outcome, reason: string, cause?: unknown) {
    super(reason, { cause });
    this.outcome = outcome;
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
   * `request` holds for each request of the chain, such as `timeout`. Its `signal` cancels the chain.
   */
  async callTool(params: Params, request: RequestOptions = {}): Promise<Chain> {
    const signal = request.signal ?? new AbortController().signal;
    const over = new AbortController();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over.signal });
    });
    aborted.catch(() => undefined);
    const chain: Chain = {
      chainId: randomUUID(), tool: params.name, arguments: params.arguments ?? {}, outcome: 'completed',
      followed: this.options.followUnadvertised === true || declares(this.client.getServerCapabilities(), this.#modern),
      results: [], followUps: [],
    };
    const run: Run = {
      chain, record: this.conversation.begin(chain.chainId, callOf(chain.tool, chain.arguments)),
      meta: params._meta ?? {}, request: { ...request, signal },
      unlessAborted: (value) => Promise.race([aborted, value]), over: over.signal,
    };
    try {
      await this.#follow(run);
    } catch (error) {
      failed(chain, error, signal);
    } finally {
      over.abort();
      const well = chain.outcome === 'completed' && !signal.aborted && chain.results.every(({ isError }) => !isError);
      this.conversation.end(run.record, well);
    }
    return chain;
  }

  /**
   * Notes that whoever asked for a chain did not get its result, or cancelled it afterwards (TC-C-55). That counts
   * within a minute. `callTool` notes by itself that its signal aborted before it returned.
   */
  notDelivered({ chainId }: Chain): void {
    this.conversation.recall(chainId);
  }

  get #modern(): boolean {
    return this.client.getProtocolEra() === 'modern';
  }

  /** Makes calls until a row of the table of outcomes ends the chain. The rows stand in its order. */
  async #follow(run: Run): Promise<void> {
    const { chain, record, request } = run;
    const made = new Set([record.first.key]);
    request.signal.throwIfAborted();
    let result = await this.#call(run, chain, this.conversation.send(record, record.first, true));
    for (;;) {
      const next = readDirective(result._meta);
      if (next.status === 'absent') return;
      if (!chain.followed) throw new End('declined', 'the server does not advertise tool chaining');
      if (next.status === 'malformed') throw new End('malformed_directive', next.why);
      const { status: _, ...directive } = next;
      const { tool: name, arguments: args } = directive;
      const followUp: FollowUp = { ...directive, status: 'not_made', listed: false };
      chain.followUps.push(followUp);
      request.signal.throwIfAborted();
      const { limit = 5 } = this.options;
      if (chain.results.length >= limit) throw new End('limit_reached', `${limit} calls were made, which is the limit`);
      const tool = await find(this.client, name, request);
      if (!tool) throw new End('unknown_tool', 'the server does not list it');
      followUp.listed = true;
      const why = invalid(tool.inputSchema ?? {}, args);
      if (why !== undefined) throw new End('invalid_arguments', 'its arguments are not valid', why);
      const call = callOf(name, args);
      if (made.has(call.key)) throw new End('cycle', 'this chain already made the same call with the same arguments');
      made.add(call.key);
      if (!visible(tool)) throw new End('declined', 'it is not meant for the model to call');
      const entry = await this.#agreed(run, { ...directive, tool }, call);
      result = await this.#call(run, followUp, entry);
    }
  }

  /** Makes one call, and notes how it ended. */
  async #call({ chain, meta, request }: Run, call: Chain | FollowUp, entry: Entry): Promise<CallToolResult> {
    const provenance = {
      chainId: chain.chainId, level: chain.results.length + 1,
      ...(call !== chain && { previousTool: chain.followUps.at(-2)?.tool ?? chain.tool }),
    };
    const handedOn = Object.entries(meta).filter(([name]) => call === chain || OF_EVERY_CALL.test(name));
    const params = { name: call.tool, arguments: call.arguments, _meta: { ...Object.fromEntries(handedOn), [EXTENSION]: provenance } };
    let [answer, status]: [Answer, FollowUp['status']] = ['none', 'unknown'];
    try {
      const result = this.#modern
        ? await this.client.callTool(params, request)
        : await this.client.request({ method: 'tools/call', params }, specTypeSchemas.CallToolResult, request);
      const kind = member(result, 'resultType');
      if (this.#modern ? kind === 'task' : (member(result, 'task') ?? null) !== null) {
        answer = 'failure'; // the server knows the task, which goes on
        throw new Error('it was answered with a task, for whose result this client does not wait');
      }
      if (typeof kind === 'string' && kind !== 'complete') throw new Error('its answer is no complete result');
      [answer, status] = [result.isError ? 'failure' : 'success', 'made'];
      chain.results.push(result);
      return result;
    } catch (error) {
      if (wasRefused(error, this.#modern)) [answer, status] = ['refused', 'not_made'];
      else if (wasAnswered(error)) answer = 'failure';
      throw error;
    } finally {
      this.conversation.answered(entry, answer);
      if ('status' in call) call.status = status;
    }
  }

  /**
   * Takes the turn of the chain, asks for consent, and records that the call is sent. Nothing is awaited between the
   * last look at the record and its entry there.
   */
  async #agreed(run: Run, proposal: Proposal, call: Call): Promise<Entry> {
    const { record, request, unlessAborted, over } = run;
    const { consent, limit = 5 } = this.options;
    const hinted = (hint: 'readOnlyHint' | 'idempotentHint') => consent?.trustsHints === true && proposal.tool.annotations?.[hint] === true;
    const keep = !hinted('readOnlyHint');
    // As long as a chain may take: for each of its calls a request for the list, and the call.
    const patience = Math.min(limit * 2 * (request.timeout ?? DEFAULT_REQUEST_TIMEOUT_MSEC), 2 ** 31 - 1);
    for (const turn of keep ? this.conversation.lineUp(record) : [])
      await unlessAborted(Promise.race([turn, sleep(patience, undefined, { signal: over })]));
    const mayRepeat = !keep || (await unlessAborted(consent?.mayRepeat?.(proposal))) === true;
    for (let known: Entry[] | undefined; ; ) {
      request.signal.throwIfAborted();
      const doubts = mayRepeat ? [] : this.conversation.doubts(record, call, hinted('idempotentHint'));
      if (known && doubts.every((doubt) => known?.includes(doubt))) return this.conversation.send(record, call, keep, known);
      await unlessAborted(this.#ask(proposal, doubts.length > 0));
      known = doubts;
    }
  }

  /** Asks the host's policy. Throws unless it says yes. */
  async #ask(proposal: Proposal, inDoubt: boolean): Promise<void> {
    const { consent } = this.options;
    const doubt = 'an earlier call may have taken effect, and nobody agreed to repeat it';
    try {
      if (!consent) throw new NobodyToAsk();
      if ((await (inDoubt ? consent.allowsAgain?.(proposal) : consent.allows(proposal))) === true) return;
    } catch (error) {
      if (!(error instanceof NobodyToAsk)) throw error;
      if (!inDoubt) throw new End('declined', 'nobody could be asked to allow it', error);
    }
    throw new End('declined', inDoubt ? doubt : 'the host did not agree');
  }
}

/** A chain that is running. */
interface Run {
  chain: Chain;
  record: Chained;
  /** Of the first call. */
  meta: Json;
  request: RequestOptions & { signal: AbortSignal };
  unlessAborted: <T>(value: T | Promise<T>) => Promise<T>;
  /** Aborts when the chain has ended. */
  over: AbortSignal;
}

/** Members of the first call's `_meta` that belong to every call: those of the protocol, and those of a trace. */
const OF_EVERY_CALL = /^(io\.modelcontextprotocol\/.*|traceparent|tracestate|baggage)$/s;

/** Writes into a chain how it ended, where that was not with a result that names no further tool. */
function failed(chain: Chain, error: unknown, signal: AbortSignal): void {
  const last = chain.followUps.at(-1);
  const isEnd = error instanceof End;
  const message = error instanceof Error ? error.message || error.name : String(error);
  let reason = isEnd ? message : quoted(message); // it may be the server's
  chain.outcome = isEnd ? error.outcome : 'failed';
  if (signal.aborted) [chain.outcome, reason] = ['cancelled', 'the chain was cancelled'];
  chain.detail = isEnd && typeof error.cause === 'string' ? `${reason}: ${error.cause}` : reason;
  chain.error = error;
  if (!last || last.status === 'made') return;
  if (!last.listed) reason += "; its name is left out, since no tool list of the server confirmed it";
  last.detail = reason;
  if (isEnd && error.cause instanceof NobodyToAsk && !signal.aborted) last.suggested = true;
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined);

/**
 * Whether the server refused a call before it acted: for want of authorization or, on revision 2026-07-28, for its
 * headers, for a capability that the client lacks, or for its version.
 */
const wasRefused = (error: unknown, modern: boolean): boolean =>
  error instanceof UnauthorizedError ||
  error instanceof InsufficientScopeError ||
  (error instanceof SdkHttpError && [401, 403].includes(error.status)) ||
  (modern && [-32020, -32021, -32022].includes(codeOf(error) as number));

/** Whether the server answered: with -32602, or with a task, which SDK version 2 itself refuses on 2026-07-28. */
const wasAnswered = (error: unknown): boolean =>
  codeOf(error) === -32602 || member(member(error, 'data'), 'resultType') === 'task';

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
  let cursor: unknown;
  try {
    for (let pages = 0; pages === 0 || typeof cursor === 'string'; pages++) {
      if (pages === 100) throw new Error('the pages of the tool list do not end');
      const params = typeof cursor === 'string' ? { cursor } : {};
      const page = await client.request({ method: 'tools/list', params }, AS_IT_IS, request);
      if (!Array.isArray(page.tools)) throw new Error('the list has no array of tools');
      found.push(...page.tools.filter((tool) => member(tool, 'name') === name));
      cursor = page.nextCursor;
    }
  } catch (error) {
    if (found.length === 0 || request.signal?.aborted) throw error;
    found = found.map(({ annotations: _, ...tool }) => tool);
  }
  return new Set(found.map((tool) => callOf('', tool).key)).size === 1 ? found[0] : undefined;
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
