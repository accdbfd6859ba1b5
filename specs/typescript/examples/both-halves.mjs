// @ts-check
/** A server and a client of the built package, in one process: node examples/both-halves.mjs */
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import { McpServer } from '@modelcontextprotocol/server';
import { CAPABILITIES, Follower, merged } from 'tool-chaining/client';
import { follows, withNextTool } from 'tool-chaining/server';

const bank = new McpServer({ name: 'bank', version: '1.0.0' }, { capabilities: { tools: {}, ...CAPABILITIES } });
/** @param {string} text @returns {{ content: { type: 'text', text: string }[] }} */
const says = (text) => ({ content: [{ type: 'text', text }] });
const listed = [{ name: 'ask_agent', inputSchema: { type: 'object' } }];
bank.registerTool('transfer', {}, (ctx) =>
  withNextTool(says('The account is locked.'), { tool: 'ask_agent' }, listed, { follows: follows(bank.server, ctx) }));
bank.registerTool('ask_agent', {}, () => says('An agent will call you.'));

const client = new Client({ name: 'desk', version: '1.0.0' }, { capabilities: CAPABILITIES });
const [here, there] = InMemoryTransport.createLinkedPair();
await bank.connect(there);
await client.connect(here);
const follower = new Follower(client, { consent: { allows: () => true } });
const chain = await follower.callTool({ name: 'transfer' });
console.log(chain.outcome, JSON.stringify(merged(chain).content));
await client.close();
