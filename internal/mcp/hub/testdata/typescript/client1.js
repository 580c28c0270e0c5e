// A client of the TypeScript SDK, first generation, talks to the hub:
// node client1.js NODE_MODULES URL TRANSPORT, where TRANSPORT is http or sse.
const { createRequire } = require("node:module");
const [modules, url, transport] = process.argv.slice(2);
const load = createRequire(modules + "/x.js");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = load("@modelcontextprotocol/sdk/client/sse.js");
const { ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");

async function main() {
  const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { name: "Ada" } }));
  const progress = [];
  await client.connect(transport === "sse" ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url)));
  const tools = await client.listTools();
  const echo = await client.callTool({ name: "echo", arguments: { message: "hello" } });
  const report = await client.callTool({ name: "report", arguments: {} }, undefined, { onprogress: (p) => progress.push(p.progress) });
  const ask = await client.callTool({ name: "ask", arguments: {} });
  const fail = await client.callTool({ name: "fail", arguments: {} });
  const read = await client.readResource({ uri: "test://a" });
  const server = client.getServerVersion()?.name;
  await client.close();
  console.log(JSON.stringify({
    server,
    tools: tools.tools.map((t) => t.name),
    echo: echo.structuredContent,
    report: report.content[0].text,
    progress,
    ask: ask.content[0].text,
    failed: fail.isError,
    read: read.contents[0].text,
  }));
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
