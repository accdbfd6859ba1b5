/** A server that is all script, and the SDK's own client connected to it. */
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { Server, type CallToolResult, type Tool } from '@modelcontextprotocol/server';
import { CAPABILITIES, merged, type Chain, type ConsentPolicy, type Proposal } from '../src/client.ts';

export type Hints = { [name: string]: unknown };
export type Answer = (args: { [name: string]: unknown }) => CallToolResult | Promise<CallToolResult>;

export const says = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });
export const fails = (text: string): CallToolResult => ({ ...says(text), isError: true });
export const leadsTo = (tool: string, args = {}, more = {}): CallToolResult => ({
  ...says('Begun.'), _meta: { nextTool: { tool, arguments: args } }, ...more,
});
export const texts = ({ content }: CallToolResult) => content.map((item) => (item.type === 'text' ? item.text : item.type));
/** What the merged result says in the client's own voice. */
export const told = (chain: Chain) => texts(merged(chain)).find((text) => /^Call \d|^The server named/.test(text)) ?? '';

/** A policy that writes down what it is asked, and answers as it is told to. */
export function asking(answer: unknown = true, again: unknown = false) {
  const asked: string[] = [];
  const answered = (question: string, answer: unknown) => (proposal: Proposal) => {
    asked.push(question);
    return (typeof answer === 'function' ? answer(proposal) : answer) as boolean;
  };
  const policy: ConsentPolicy = { allows: answered('allows', answer), allowsAgain: answered('allowsAgain', again) };
  return { ...policy, asked };
}

/** Connects a client to a server with these tools. `log` has the calls, and `list` the list, which a test may change. */
export async function connected(
  tools: Record<string, Answer>,
  { advertises = true, hints = {} }: { advertises?: boolean; hints?: Record<string, Hints> } = {},
) {
  const log: { name: string; meta?: unknown; arguments?: unknown }[] = [];
  const list = Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' as const }, annotations: hints[name] }));
  const server = new Server({ name: 'bank', version: '1' }, { capabilities: { tools: {}, ...(advertises && CAPABILITIES) } });
  server.setRequestHandler('tools/list', () => ({ tools: list as Tool[] }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args, _meta: meta } }) => {
    log.push({ name, meta, arguments: args });
    return (await tools[name]?.(args ?? {})) ?? says('There is no such tool.');
  });
  const client = new Client({ name: 'desk', version: '1' }, { capabilities: CAPABILITIES });
  const [here, there] = InMemoryTransport.createLinkedPair();
  const { send } = there;
  there.send = (message, options) => {
    // The SDK's server cannot send a task.
    if ('result' in message && 'task' in message.result) delete message.result.content;
    return send.call(there, message, options);
  };
  await server.connect(there);
  await client.connect(here);
  return { client, log, list, names: () => log.map(({ name }) => name) };
}
