/** The client half: makes a call, follows the directives of its results, and gives one result for all. */
import { randomUUID } from 'node:crypto';
import type { CallToolResult, RequestOptions, ServerCapabilities, Tool } from '@modelcontextprotocol/client';
import { invalidWithin } from './arguments.ts';
import { canonical, declares, EXTENSION, isWords, member, readDirective, visible, type Json } from './directive.ts';

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
  /** The server's words for people; never for a model (TC-C-40, TC-C-41). */
  title?: string;
}

export interface ChainOptions {
  /**
   * What decides on the calls of the host's model, consent included: it decides on follow-up calls too
   * (TC-C-20, TC-C-42). Absent: nobody can be asked, and `trustHints` says what is called (TC-C-21).
   */
  allow?: (proposal: Proposal) => boolean | Promise<boolean>;
  /**
   * Asks the user for a call that equals one whose effect is unknown, and says so (TC-C-55). Absent: such a
   * call is not made.
   */
  allowAgain?: (proposal: Proposal) => boolean | Promise<boolean>;
  /** Whether this server is trusted to tell what its tools do. */
  trustHints?: boolean;
  /** Whether a server is followed that is not known to advertise the extension (TC-C-03). */
  followUnadvertised?: boolean;
  /** The most calls of one chain, the first included. */
  limit?: number;
  /** Ends the chain when aborted: outcome `cancelled`. */
  signal?: AbortSignal;
  /** Milliseconds for the whole chain. */
  totalTime?: number;
  /** For each request of the chain, such as `timeout`. */
  request?: RequestOptions;
  /** `_meta` of each call of the chain, such as who calls. */
  meta?: Json;
}

export type Outcome =
  | 'cancelled' | 'failed' | 'completed' | 'malformed_directive' | 'limit_reached'
  | 'unknown_tool' | 'invalid_arguments' | 'cycle' | 'declined';

export interface FollowUp {
  tool: string;
  arguments: Json;
  title?: string;
  /** `unknown`: it was started, and no result came back. */
  fate: 'made' | 'not_made' | 'unknown';
  /** Whether the tool was found in the server's list; no other name is told a model (TC-C-53). */
  listed: boolean;
}

export interface Chain {
  chainId: string;
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

/** The newest calls whose effect is unknown, and how many of each, by the client that started them. */
const IN_DOUBT = new WeakMap<ChainClient, Map<string, number>>();
const MOST_IN_DOUBT = 1000;

/** Makes a call and follows its chain to the end. Whatever happens, what came back is in the answer (TC-C-25). */
export async function callWithChaining(client: ChainClient, first: Params, options: ChainOptions = {}): Promise<Chain> {
  const { limit = 5, totalTime = 300_000 } = options;
  const modern = client.getProtocolEra() === 'modern';
  const late = AbortSignal.timeout(totalTime);
  const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
  const request = { ...options.request, signal };
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => undefined);
  const inTime = <T>(work: T | Promise<T>) => Promise.race([aborted, work]);
  const chain: Chain = { chainId: randomUUID(), outcome: 'completed', results: [], followUps: [] };
  const made = new Set<string>();
  const inDoubt = IN_DOUBT.get(client) ?? new Map<string, number>();
  IN_DOUBT.set(client, inDoubt);

  async function call(params: Params): Promise<CallToolResult> {
    signal.throwIfAborted();
    const key = callKey(params.name, params.arguments);
    made.add(key);
    const before = inDoubt.get(key) ?? 0;
    inDoubt.delete(key); // so that the newest stand last
    inDoubt.set(key, before + 1);
    for (const oldest of inDoubt.keys()) if (inDoubt.size > MOST_IN_DOUBT) inDoubt.delete(oldest);
    const result = await client.callTool(params, request);
    const left = (inDoubt.get(key) ?? 1) - 1;
    if (left > 0) inDoubt.set(key, left);
    else inDoubt.delete(key);
    if (!['complete', 'input_required'].includes(resultType(result)))
      throw new End('failed', 'the type of the result is not known');
    chain.results.push(result);
    return result;
  }

  /** Reads the list anew, so that no check is made against one from before the directive (TC-C-13, TC-C-43). */
  async function find(name: string): Promise<Tool> {
    const found = new Map<string, Tool>();
    const seen = new Set<string | undefined>();
    let cursor: string | undefined;
    do {
      if (seen.has(cursor)) throw new End('failed', 'the tools cannot be listed: their pages do not end');
      seen.add(cursor);
      const page = await client.listTools(cursor === undefined ? undefined : { cursor }, { ...request, cacheMode: 'refresh' });
      for (const tool of page.tools) if (tool.name === name) found.set(canonical(tool), tool);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const [tool, other] = found.values();
    if (!tool) throw new End('unknown_tool', 'the server does not list it');
    if (other) throw new End('unknown_tool', 'the server lists several tools of this name');
    return tool;
  }

  async function agreed(policy: ChainOptions['allow'], proposal: Proposal): Promise<boolean> {
    try {
      return policy !== undefined && (await inTime(policy(proposal)));
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

  /** Goes down the table of outcomes; returns if the follow-up call is to be made. */
  async function check(next: FollowUp): Promise<void> {
    if (chain.results.length >= limit) throw new End('limit_reached', `a chain has at most ${limit} calls`);
    const tool = await find(next.tool);
    next.listed = true;
    const why = await inTime(invalidWithin(tool.inputSchema, next.arguments));
    if (why !== undefined) throw new End('invalid_arguments', why);
    if (made.has(callKey(next.tool, next.arguments))) throw new End('cycle', 'the chain has made this call');
    if (!visible(tool)) throw new End('declined', 'the tool is hidden from the model');
    if (!options.followUnadvertised && !declares(client.getServerCapabilities(), modern))
      throw new End('declined', 'the server did not advertise the extension');
    const proposal = { tool, arguments: next.arguments, ...(next.title && { title: next.title }) };
    if (inDoubt.has(callKey(next.tool, next.arguments)) && !(await agreed(options.allowAgain, proposal)))
      throw new End('declined', 'the same call was started before, and whether it took effect is not known');
    if (!(await allowed(proposal)))
      throw new End('declined', 'the policy or the user did not agree');
  }

  try {
    let previousTool = first.name;
    let result = await call({ ...first, ...(options.meta && { _meta: { ...options.meta, ...first._meta } }) });
    for (;;) {
      signal.throwIfAborted();
      const complete = resultType(result) === 'complete' && (modern || !('task' in result));
      const next = readDirective(complete ? result._meta : undefined);
      if (next.status === 'absent') return chain;
      if (next.status === 'malformed') throw new End('malformed_directive', next.why);
      const { tool, title } = next;
      const followUp: FollowUp = { tool, arguments: next.arguments, ...(title && { title }), fate: 'not_made', listed: false };
      chain.followUps.push(followUp);
      await check(followUp);
      signal.throwIfAborted(); // here, since from here on the call may have been sent
      followUp.fate = 'unknown';
      const { progressToken: _, ...meta } = options.meta ?? {};
      const provenance = { chainId: chain.chainId, level: chain.results.length + 1, previousTool };
      result = await call({ name: tool, arguments: next.arguments, _meta: { ...meta, [EXTENSION]: provenance } });
      followUp.fate = 'made';
      previousTool = tool;
    }
  } catch (error) {
    chain.outcome = options.signal?.aborted ? 'cancelled' : error instanceof End ? error.outcome : 'failed';
    return { ...chain, detail: error instanceof Error ? error.message : String(error), error };
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

/** Absent means complete. On revision 2026-07-28, SDK version 2 itself refuses what it does not know. */
const resultType = (result: CallToolResult) => String(member(result, 'resultType') ?? 'complete');

/** The content of every step in order, without the words about calls that were started (TC-C-24, TC-C-26). */
export function contentOf(chain: Chain): CallToolResult['content'] {
  return chain.results.flatMap(({ content }, index) => {
    const started = (chain.followUps[index]?.fate ?? 'not_made') !== 'not_made';
    return started ? content.filter((item) => !isWords(item)) : content;
  });
}

/** Why the last follow-up call was not made: for a model, so without any words of the server's. */
const REASONS: Partial<Record<Outcome, string>> = {
  limit_reached: 'as many calls were made as are allowed',
  unknown_tool: 'the server does not list this tool',
  invalid_arguments: 'its arguments are not valid',
  cycle: 'the same call was made before',
  declined: 'the policy or the user did not agree',
  cancelled: 'the user cancelled',
  failed: 'the tools could not be listed, or the time was up',
};

/**
 * The chain as the one result of the one call that a model, or a host upstream, made (TC-C-32 to TC-C-36).
 *
 * Its last item says what became of each follow-up call. Throws what the first call threw, if that brought
 * no result.
 */
export function merged(chain: Chain): CallToolResult {
  const first = chain.results[0];
  if (!first) throw chain.error;
  const told = chain.followUps.map(({ tool, arguments: args, fate, listed }) => {
    const several = listed && chain.followUps.filter((other) => other.tool === tool).length > 1;
    const name = (listed ? JSON.stringify(tool.slice(0, 128)) : 'A tool that was not found in the list') + (several ? ` with ${JSON.stringify(args)}` : '');
    if (fate === 'made') return `${name} was made; what it returned stands above. Do not repeat it.`;
    if (fate === 'not_made') return `${name} was not made: ${REASONS[chain.outcome]}.`;
    return (
      `${name} was started, and whether it took effect is not known. Do not repeat it without asking the user. ` +
      'Calling the first tool again could make this call again.'
    );
  });
  if (chain.outcome === 'malformed_directive') told.push('The server named one more that could not be read; it was not made.');
  const content = contentOf(chain).filter((item) => !isWords(item));
  if (told.length > 0) {
    const text = `Follow-up calls by the client, as the server directed: ${told.join(' ')}`;
    content.push({ type: 'text', text, annotations: { audience: ['assistant'] } });
  }
  const { nextTool, ...meta } = first._meta ?? {};
  const structuredContent = nextTool === undefined ? first.structuredContent : withoutNextStep(first.structuredContent);
  const returned = chain.results.slice(1).map(forModel);
  const followUps = told.map((said, index) => (returned[index] ? `${said} It returned: ${returned[index]}` : said));
  return {
    content,
    isError: chain.results.some(({ isError }) => isError) || chain.followUps.some(({ fate }) => fate === 'unknown'),
    ...(structuredContent !== undefined && {
      structuredContent: followUps.length > 0 ? { ...(structuredContent as Json), followUps } : structuredContent,
    }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

/** What a result says to a model, as one text: for hosts that show structured content alone (TC-C-36). */
const forModel = ({ content }: CallToolResult) =>
  content
    .filter((item) => !isWords(item) && !(item.annotations?.audience?.join() === 'user'))
    .map((item) => (item.type === 'text' ? item.text : `[${item.type}]`))
    .join('\n');

/** `nextStep` beside a directive is words, if it names a tool (TC-S-28). */
function withoutNextStep(content: unknown): unknown {
  if (typeof member(member(content, 'nextStep'), 'tool') !== 'string') return content;
  const { nextStep: _, ...rest } = content as Json;
  return rest;
}

/** What SDK version 1 has of a `ChainClient`; it speaks revision 2025-11-25 and none later. */
interface Version1Client {
  callTool(params: Params, schema?: undefined, options?: object): Promise<unknown>;
  listTools(params?: { cursor?: string }, options?: object): Promise<unknown>;
  getServerCapabilities(): unknown;
}

/** Makes a `ChainClient` of the `Client` of `@modelcontextprotocol/sdk` (version 1). */
export const version1 = (client: Version1Client): ChainClient => ({
  callTool: async (params, options) => (await client.callTool(params, undefined, options)) as CallToolResult,
  listTools: async (params, options) => (await client.listTools(params, options)) as { tools: Tool[] },
  getProtocolEra: () => 'legacy',
  getServerCapabilities: () => client.getServerCapabilities() as ServerCapabilities | undefined,
});
