/** The TypeScript half as a client of the scenario `tool-chaining-client`; `run.py` puts it beside the examples. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { callWithChaining, CAPABILITIES } from '../src/client.ts';

const { MCP_CONFORMANCE_PROTOCOL_VERSION: version, MCP_CONFORMANCE_CONTEXT } = process.env;
const { calls, refused } = JSON.parse(MCP_CONFORMANCE_CONTEXT ?? '{}') as { calls: string[]; refused: string[] };

const mode = version === '2026-07-28' ? { pin: version } : 'legacy';
const info = { name: 'tool-chaining', version: '1.0.0' };
const client = new Client(info, { capabilities: CAPABILITIES, versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv.at(-1) ?? '')));
for (const name of calls) {
  const allow = ({ tool }: { tool: { name: string } }) => !refused.includes(tool.name);
  await callWithChaining(client, { name, arguments: {} }, { allow });
}
await client.close();
