/** The server half: puts a directive on a result, and says it in words where the client may not follow. */
import { CLIENT_CAPABILITIES_META_KEY, type CallToolResult, type Server, type ServerContext } from '@modelcontextprotocol/server';
import { invalid, undeclared } from './arguments.ts';
import { canonical, declares, isTitle, isWords, member, visible, words, type Json, type NextTool } from './directive.ts';

export { CAPABILITIES, readProvenance } from './directive.ts';

/** A tool as `tools/list` has it for the caller. */
export interface ListedTool {
  name: string;
  inputSchema: object;
  _meta?: Json;
}

/** Whether the client of a request is known to follow directives, on either revision (TC-C-01). */
export function follows(server: Server, ctx: ServerContext): boolean {
  const capabilities = member(ctx.mcpReq.envelope, CLIENT_CAPABILITIES_META_KEY);
  return capabilities !== undefined ? declares(capabilities, true) : declares(server.getClientCapabilities(), false);
}

/**
 * Returns the complete result with the directive, and with the words unless `client` follows directives.
 *
 * `tools` is what the caller gets to see in `tools/list`. A directive that breaks a rule is reported to `mistake`,
 * and the result goes out without it. One with an argument that the tool does not declare is reported, and sent.
 */
export function withNextTool(
  result: CallToolResult,
  next: NextTool,
  tools: ListedTool[],
  client: { follows: boolean },
  mistake: (why: string) => void = console.error,
): CallToolResult {
  const target = tools.find(({ name }) => name === next.tool);
  const why = target ? fault(result, next, target) : 'the caller is not shown this tool (TC-S-12)';
  if (!target || why !== undefined) {
    mistake(`No directive to ${JSON.stringify(next.tool)} was sent: ${why}.`);
    return result;
  }
  const { tool, arguments: args = {}, title } = next;
  const unknown = undeclared(target.inputSchema, args);
  if (unknown !== undefined) mistake(`The directive to ${JSON.stringify(tool)} has a mistake: ${unknown} (TC-S-35).`);
  return {
    ...result,
    content: client.follows ? result.content : [...result.content, words(tool, args)],
    _meta: { ...result._meta, nextTool: { tool, arguments: args, ...(title !== undefined && { title }) } },
  };
}

/** Text without controls, line ends and what changes its direction. */
const ONE_LINE = /^[^\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

/** Returns the rule that a directive would break, or undefined. */
function fault(result: CallToolResult, next: NextTool, target: ListedTool): string | undefined {
  if (!visible(target)) return 'the tool is hidden from the model (TC-S-12)';
  if (result.content.every((item) => isWords(item) || (item.type === 'text' && item.text.trim() === '')))
    return 'the result says nothing to the user (TC-S-17)';
  if (next.title !== undefined && !(isTitle(next.title) && ONE_LINE.test(next.title)))
    return 'its title is not one line of 1 to 200 characters, without controls (TC-S-27)';
  try {
    canonical(next);
  } catch (error) {
    return `it is not I-JSON (TC-S-26): ${error}`;
  }
  const wrong = invalid(target.inputSchema, next.arguments ?? {});
  return wrong && `${wrong} (TC-S-14)`;
}
