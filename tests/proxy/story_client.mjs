// The TypeScript SDK's client, unmodified: tries to pay from the locked account, and answers what it
// is asked on the way. Its server is a URL, or the command that the arguments are.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [server, ...args] = process.argv.slice(2);
const transport = server.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(server))
  : new StdioClientTransport({ command: server, args, env: process.env });
const client = new Client(
  { name: "typescript-client", version: "1.0.0" },
  { capabilities: { elicitation: {} } },
);
client.setRequestHandler(ElicitRequestSchema, (request) => {
  const [name] = Object.keys(request.params.requestedSchema.properties);
  return { action: "accept", content: { [name]: "callback" } };
});
await client.connect(transport);
await client.listTools(); // From here on it checks structured content against the schemas.
const details = { fromAccountId: "acc_checking_001", amount: 250 };
const result = await client.callTool({ name: "prepare_money_transfer", arguments: details });
await client.close();
console.log(JSON.stringify(result));
