// A small agent for each framework, as its documentation writes one: `FRAMEWORK URL COMMAND`.
// The URL is the model's, the command starts the server. Nothing of this project is imported.

const [framework, baseURL, line] = process.argv.slice(2);
const [command, ...args] = line.split(" ");
const prompt = "Move 250 from Primary Checking.";

async function vercel() {
  const { generateText, stepCountIs } = await import("ai");
  const { createMCPClient } = await import("@ai-sdk/mcp");
  const { Experimental_StdioMCPTransport: Stdio } = await import("@ai-sdk/mcp/mcp-stdio");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const model = createOpenAICompatible({ name: "scripted", baseURL, apiKey: "none" })("scripted");
  const bank = await createMCPClient({ transport: new Stdio({ command, args }) });
  await generateText({ model, tools: await bank.tools(), stopWhen: stepCountIs(3), prompt });
  await bank.close();
}

async function mastra() {
  const { Agent } = await import("@mastra/core/agent");
  const { MCPClient } = await import("@mastra/mcp");
  const bank = new MCPClient({ servers: { bank: { command, args } }, timeout: 300_000 });
  const model = { id: "scripted/scripted", url: baseURL, apiKey: "none" };
  const about = { id: "clerk", name: "clerk", instructions: "You are a clerk.", model };
  await new Agent({ ...about, tools: await bank.listTools() }).generate(prompt);
  await bank.disconnect();
}

await { vercel, mastra }[framework]();
process.exit(0);
