// Clients of the TypeScript SDK, 1.x and 2.x, as they come. Each argument is a run as JSON: `sdk`,
// `mode` of 2.x, `call`, the `picks` of its user, and `url` or `command`. Prints each result on a
// line.
import { Client } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const info = { name: "typescript-client", version: "1.0.0" };
const capabilities = { elicitation: { form: {} } };

function answering(run) {
  return ({ params }) => {
    const [[name, form]] = Object.entries(params.requestedSchema.properties);
    const offered = JSON.stringify(form);
    const pick = run.picks.find((each) => offered.includes(each));
    return { action: "accept", content: { [name]: pick } };
  };
}

function transport(Stdio, Http, { url, command }) {
  if (url) return new Http(new URL(url));
  const [program, ...args] = command;
  return new Stdio({ command: program, args, env: process.env });
}

function made(run) {
  if (run.sdk === 1) {
    const client = new Client1(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answering(run));
    return [client, transport(Stdio1, Http1, run)];
  }
  const client = new Client(info, { capabilities, versionNegotiation: { mode: run.mode } });
  client.setRequestHandler("elicitation/create", answering(run));
  return [client, transport(StdioClientTransport, StreamableHTTPClientTransport, run)];
}

for (const argument of process.argv.slice(2)) {
  const run = JSON.parse(argument);
  const [client, over] = made(run);
  await client.connect(over);
  // Whoever has read the list checks the structured content of the tool that was called.
  await client.listTools();
  const [name, args] = run.call;
  console.log(JSON.stringify(await client.callTool({ name, arguments: args })));
  await client.close();
}
process.exit(0);
