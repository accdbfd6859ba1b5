// The TypeScript SDK's client, which can be asked: confirms a transfer with its code, and answers
// as each argument after the URL says. Prints what came of each confirmation.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, ...answers] = process.argv.slice(2);
const client = new Client(
  { name: "typescript-client", version: "1.0.0" },
  { capabilities: { elicitation: {} } },
);
const asked = [];
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message);
  const action = answers[asked.length - 1];
  return action === "accept" ? { action, content: { agreed: true } } : { action };
});
const headers = { Authorization: `Bearer ${process.env.BANK_TOKEN}` };
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
await client.connect(transport);

const details = { fromAccountId: "acc_everyday_001", toAccountId: "acc_savings_001", amount: 12.5 };
const prepared = await client.callTool({ name: "prepare_money_transfer", arguments: details });
const [, code] = /code for transfer \w+ is (\d{6})/.exec(JSON.stringify(prepared.content));
const { transferId } = prepared.structuredContent;
const confirm = { transferId, action: "confirm", confirmationCode: code };
const statuses = [];
for (const _ of answers) {
  const name = "confirm_or_cancel_money_transfer";
  const result = await client.callTool({ name, arguments: confirm });
  statuses.push(result.structuredContent.status);
}
await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ statuses, asked: asked.length }));
