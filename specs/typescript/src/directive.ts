/** The objects of the extension, and how they are read: TC-D-01 to TC-D-20. */
import canonicalize from 'canonicalize';

/** The identifier of the extension; provisional, so it stands here and nowhere else. */
export const EXTENSION = 'com.example/tool-chaining';

/** What either side puts among its capabilities, so that both revisions find it (TC-S-01, TC-C-01). */
export const CAPABILITIES = {
  extensions: { [EXTENSION]: { version: 1 } },
  experimental: { [EXTENSION]: { version: 1 } },
};

export type Json = { [name: string]: unknown };

/** `_meta.nextTool` as a server sends it. */
export interface NextTool {
  tool: string;
  arguments?: Json;
  title?: string;
}

/** What a reader makes of a result's `_meta`. */
export type Reading =
  | { status: 'absent' }
  | { status: 'malformed'; why: string }
  | { status: 'valid'; tool: string; arguments: Json; title?: string };

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a member of an object, and undefined for everything that is none of its own. */
export function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Counts characters as JSON Schema does: by code point. */
const length = (text: string) => [...text].length;

/** Control characters, line ends, and what controls the direction of text. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Says whether a value is a valid `title` (TC-S-27). Readers ignore others (TC-D-05). */
export const isTitle = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && length(value) <= 200 && value.search(UNSEEN) < 0;

/** Returns a server's text as one JSON string, on one line, which nobody takes for the client's own words (TC-C-36). */
export const jsonString = (text: string): string =>
  JSON.stringify(text).replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns what RFC 8785 writes for a value. Throws where it cannot: Infinity, half a surrogate pair. */
export function canonical(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** Reads the `_meta` of a complete `tools/call` result, strictly and without converting anything (TC-D-01). */
export function readDirective(meta: unknown): Reading {
  const directive = member(meta, 'nextTool');
  if (directive === undefined) return { status: 'absent' };
  const malformed = (why: string): Reading => ({ status: 'malformed', why });
  if (!isObject(directive)) return malformed('nextTool must be an object');
  // The origin's text calls the member `name` (TC-D-20).
  const tool = Object.hasOwn(directive, 'tool') ? directive.tool : member(directive, 'name');
  if (typeof tool !== 'string' || tool === '') return malformed('nextTool.tool must be a string that is not empty');
  const args = Object.hasOwn(directive, 'arguments') ? directive.arguments : {};
  if (!isObject(args)) return malformed('nextTool.arguments must be an object');
  try {
    canonical(directive);
  } catch {
    return malformed('RFC 8785 cannot write nextTool'); // TC-D-19
  }
  const title = member(directive, 'title');
  return { status: 'valid', tool, arguments: args, ...(isTitle(title) && { title }) };
}

/** Says whether one side's capabilities have well-formed settings of the extension (TC-D-12). */
export function declares(capabilities: unknown, modern: boolean): boolean {
  const places = modern ? ['extensions'] : ['extensions', 'experimental'];
  return places.some((place) => {
    const settings = member(member(capabilities, place), EXTENSION);
    if (!isObject(settings)) return false;
    return !Object.hasOwn(settings, 'version') || isCount(settings.version);
  });
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 1;

/** Returns the item that repeats a directive for a model: the server's suggestion, and no order (TC-S-05). */
export const words = (tool: string, args: Json) => ({
  type: 'text' as const,
  text:
    'Next step suggested by this server: unless the result of that call already follows here, call the tool ' +
    `${JSON.stringify(tool)} once, with exactly these arguments: ${JSON.stringify(args)}`,
  annotations: { audience: ['assistant' as const] },
  _meta: { [EXTENSION]: { describes: 'nextTool' } },
});

/** Says whether a content item repeats a directive for a model (TC-S-05). */
export function isWords(item: unknown): boolean {
  return member(member(member(item, '_meta'), EXTENSION), 'describes') === 'nextTool';
}

/** Says whether the model may see a tool, by its `_meta.ui.visibility` (TC-C-20, TC-S-12). */
export function visible(tool: { _meta?: unknown }): boolean {
  const visibility = member(member(tool._meta, 'ui'), 'visibility');
  if (visibility === undefined || visibility === 'model') return true;
  return Array.isArray(visibility) && visibility.includes('model');
}
