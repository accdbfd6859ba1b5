// The TypeScript SDK's client under test: following chains, written in a few lines around it.
import { randomUUID } from "node:crypto";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const ID = "com.example/tool-chaining";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
const capabilities = { elicitation: {}, experimental: { [ID]: { version: 1 } } };
const client = new Client({ name: "typescript-client", version: "1.0.0" }, { capabilities });

function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, plain(value[key])]));
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// Returns [tool, arguments], null where there is no directive, undefined where it is malformed.
function read(meta) {
  if (!meta || !("nextTool" in meta)) return null;
  const value = meta.nextTool;
  if (!isObject(value)) return undefined;
  if ("tool" in value && "name" in value && value.tool !== value.name) return undefined;
  const tool = "tool" in value ? value.tool : value.name;
  const args = "arguments" in value ? value.arguments : {};
  return typeof tool === "string" && tool && isObject(args) ? [tool, args] : undefined;
}

async function find(name) {
  let cursor;
  do {
    const page = await client.listTools(cursor ? { cursor } : {});
    const tool = page.tools.find((each) => each.name === name);
    if (tool) return tool;
    cursor = page.nextCursor;
  } while (cursor);
}

// Validates what the scripts of this test need: required members, their types, nothing else.
function fits(schema, args) {
  const known = schema.properties ?? {};
  const types = { integer: "number" };
  return (
    (schema.required ?? []).every((name) => name in args) &&
    Object.keys(args).every((name) => name in known || schema.additionalProperties !== false) &&
    Object.entries(args).every(([name, value]) => {
      const type = known[name]?.type;
      if (type === undefined || type === "null") return true;
      if (type === "array") return Array.isArray(value);
      return typeof value === (types[type] ?? type);
    })
  );
}

async function follow(tool, args) {
  const chainId = randomUUID();
  const made = [];
  const content = [];
  let previousTool;
  for (;;) {
    made.push(JSON.stringify([tool, plain(args)]));
    const provenance = { chainId, level: made.length, ...(previousTool && { previousTool }) };
    const result = await client.callTool({ name: tool, arguments: args, _meta: { [ID]: provenance } });
    content.push(...result.content.filter((item) => !item._meta?.[ID]));
    const directive = read(result._meta);
    if (directive === null) return ["completed", content];
    if (directive === undefined) return ["malformed_directive", content];
    previousTool = tool;
    [tool, args] = directive;
    if (made.length === 5) return ["limit_reached", content];
    const found = await find(tool);
    if (!found) return ["unknown_tool", content];
    if (!fits(found.inputSchema, args)) return ["invalid_arguments", content];
    if (made.includes(JSON.stringify([tool, plain(args)]))) return ["cycle", content];
    const visible = found._meta?.ui?.visibility?.includes("model") ?? true;
    const hints = found.annotations ?? {};
    if (!visible || !(hints.readOnlyHint === true || hints.destructiveHint === false)) {
      return ["declined", content];
    }
  }
}

await client.connect(new StreamableHTTPClientTransport(new URL(process.argv.at(-1))));
const [outcome, content] = await follow(context.tool, context.arguments);
await client.close();
console.log(JSON.stringify({ outcome, content }));
