/** The server half: puts a directive on a result, and says it in words where the client may not follow. */
import { CLIENT_CAPABILITIES_META_KEY, type CallToolResult, type Server, type ServerContext } from '@modelcontextprotocol/server';
import { invalid } from './arguments.ts';
import { canonical, declares, isTitle, isWords, member, readDirective, visible, words, type Json, type NextTool } from './directive.ts';

export { CAPABILITIES } from './directive.ts';

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
 * `tools` is what the caller gets to see in `tools/list`. Arguments become JSON as they do on the wire: a `Date` is a
 * text. The tool has already acted, so a directive that cannot be sent is reported to `mistake`, and left out.
 */
export function withNextTool(
  result: CallToolResult,
  next: NextTool,
  tools: ListedTool[],
  client: { follows: boolean },
  mistake: (why: string) => void = console.error,
): CallToolResult {
  try {
    const nextTool = checked(result, next, tools);
    const content = client.follows ? result.content : [...result.content, words(nextTool.tool, nextTool.arguments)];
    return { ...result, content, _meta: { ...result._meta, nextTool } };
  } catch (error) {
    mistake(`No directive to ${String(next?.tool)} was sent: ${error instanceof Error ? error.message : String(error)}.`);
    return result;
  }
}

/** Returns the directive as JSON. Throws an error that names the rule which it would break. */
function checked({ content }: CallToolResult, next: NextTool, tools: ListedTool[]): NextTool & { arguments: Json } {
  canonical(next); // throws where it is not I-JSON (TC-S-26)
  const nextTool = JSON.parse(JSON.stringify(next));
  const reading = readDirective({ nextTool });
  if (reading.status !== 'valid') throw new Error(`${member(reading, 'why')} (TC-D-01)`);
  const target = tools.find(({ name }) => name === reading.tool);
  if (!target) throw new Error('the caller is not shown this tool (TC-S-12)');
  if (!visible(target)) throw new Error('the tool is hidden from the model (TC-S-12)');
  if (content.every((item) => isWords(item) || (item.type === 'text' && item.text.trim() === '')))
    throw new Error('the result says nothing to the user (TC-S-17)');
  if (next.title !== undefined && !isTitle(next.title))
    throw new Error('its title is not one line of 1 to 200 characters, without controls (TC-S-27)');
  const wrong = invalid(target.inputSchema, reading.arguments);
  if (wrong !== undefined) throw new Error(`${wrong} (TC-S-14)`);
  const { status: _, ...directive } = reading;
  return directive;
}
