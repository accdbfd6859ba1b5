/** A chain as it ended, and the one result that is made of it (TC-C-32 to TC-C-36). */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { canonical, isObject, isWords, jsonString, member, words, type Json } from './directive.ts';

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
  /** Why it was not made, or brought no result. */
  detail?: string;
  /** Whether it was not made only because nobody could be asked. Then the merged result suggests it to the model. */
  suggested?: true;
}

export interface Chain {
  chainId: string;
  /** The tool that was called first, and its arguments. */
  tool: string;
  arguments: Json;
  outcome: Outcome;
  /** Why it ended so, for people; `merged` has what a model is told. */
  detail?: string;
  /** Whether the client follows this server. If not, no result of it is changed (TC-C-03). */
  followed: boolean;
  /** The results of the calls, in their order. */
  results: CallToolResult[];
  /** The follow-up calls, and at the end the one that was not made. */
  followUps: FollowUp[];
  /** What was thrown, where a call brought no result. */
  error?: unknown;
}

/** Returns a server's text as a JSON string of its first 128 characters (TC-C-53). */
export function quoted(text: string): string {
  const characters = [...text];
  return jsonString(characters.length > 128 ? `${characters.slice(0, 127).join('')}…` : text);
}

/**
 * The chain as the one result of the one call that a model, a View or a host upstream made.
 *
 * It has the content of every step, and at the end what became of each follow-up call. Throws what the first
 * call threw, if that brought no result.
 */
export function merged(chain: Chain): CallToolResult {
  const [received] = chain.results;
  if (!received) throw chain.error;
  if (!chain.followed) return received;
  const [first = received, ...later] = chain.results.map(withoutWords);
  const said = chain.followUps.map((followUp, index) => sentence(followUp, index + 2, later[index]));
  if (chain.outcome === 'malformed_directive') said.push(`The server named a next step that cannot be read: ${chain.detail}.`);
  if (said.length === 0) return first;
  const unknown = chain.followUps.some(({ status }) => status === 'unknown');
  const isError = unknown || chain.results.some(({ isError }) => isError === true);
  const again = isError && (unknown || later.length > 0)
    ? [`Calling ${quoted(chain.tool)} again could repeat what was already done.`] : [];
  const content = [...first.content, ...later.flatMap(withData), forAssistant([...said, ...again].join('\n'))];
  const last = chain.followUps.at(-1);
  if (last?.suggested) content.push(words(last.tool, last.arguments));
  const { structuredContent: own } = first;
  if (!isObject(own) || Object.hasOwn(own, 'followUps')) return { ...first, content, isError };
  const told = said.map((one, index) => (later[index] ? `${one} It returned: ${forModel(later[index])}` : one));
  return { ...first, content, isError, structuredContent: { ...own, followUps: [...told, ...again] } };
}

/** Says of a follow-up call what became of it, in the client's own words (TC-C-33, TC-C-52, TC-C-53). */
function sentence({ tool, status, listed, detail }: FollowUp, level: number, result?: CallToolResult): string {
  if (!listed) return `Call ${level}, a further step that the server named, was not made: ${detail}.`;
  const call = `Call ${level}, the server's next step ${quoted(tool)},`;
  if (status === 'made') return `${call} has already run${result?.isError ? ' and returned an error.' : '. Do not call it again.'}`;
  if (status === 'not_made') return `${call} was not made: ${detail}.`;
  return (
    `${call} was started, and it is not known whether it took effect: ${detail}. ` +
    'Do not call it again unless you know that it did not.'
  );
}

/** A result without its directive and the words (TC-C-35): marked items, and `nextStep` beside a directive. */
function withoutWords(result: CallToolResult): CallToolResult {
  const content = result.content.filter((item) => !isWords(item));
  if (member(result, '_meta') === undefined || !Object.hasOwn(result._meta ?? {}, 'nextTool')) return { ...result, content };
  const { _meta: { nextTool: _, ...meta } = {}, structuredContent, ...rest } = result;
  const { nextStep, ...data } = isObject(structuredContent) ? structuredContent : {};
  const left = typeof member(nextStep, 'tool') === 'string' ? data : structuredContent;
  return {
    ...rest,
    content,
    ...(left !== undefined && { structuredContent: left }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

const forAssistant = (text: string): ContentBlock => ({ type: 'text', text, annotations: { audience: ['assistant'] } });

const forUserAlone = ({ annotations }: ContentBlock) => annotations?.audience?.join() === 'user';

/** The content of a result, with its structured content unless an item repeats that for the model (TC-C-24). */
function withData({ content, structuredContent: data }: CallToolResult): ContentBlock[] {
  if (data == null || content.some((item) => repeats(item, data))) return content;
  return [...content, forAssistant(JSON.stringify(data))];
}

/** Whether an item has the same data. SDKs put the plain value of a tool under `result`. */
function repeats(item: ContentBlock, data: unknown): boolean {
  if (item.type !== 'text' || forUserAlone(item)) return false;
  try {
    return [() => ({ result: item.text }), () => JSON.parse(item.text)].some((value) => canonical(value()) === canonical(data));
  } catch {
    return false;
  }
}

/** What a result says to a model, as one JSON string: for hosts that show structured content alone (TC-C-36). */
const forModel = (result: CallToolResult) =>
  jsonString(withData(result).filter((item) => !forUserAlone(item)).map(inText).join('\n'));

function inText(item: ContentBlock): string {
  if (item.type === 'text') return item.text;
  if (item.type === 'resource_link') return `[${item.name}: ${item.uri}]`;
  if (item.type === 'resource') return 'text' in item.resource ? item.resource.text : `[${item.resource.uri}]`;
  return `[${item.type}, ${item.mimeType}]`;
}
