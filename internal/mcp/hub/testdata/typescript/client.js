// A client of the TypeScript SDK, second generation, talks to the hub:
// node client.js NODE_MODULES URL MODE, where MODE is legacy, auto or modern.
// It prints what it saw as one JSON object.
const { createRequire } = require("node:module");
const [modules, url, mode] = process.argv.slice(2);
const load = createRequire(modules + "/x.js");
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");

async function main() {
  const client = new Client(
    { name: "test", version: "1" },
    {
      capabilities: { elicitation: {}, sampling: {}, roots: {} },
      versionNegotiation: { mode: mode === "modern" ? { pin: "2026-07-28" } : mode },
    },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ada" } }));
  const progress = [];
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const tools = await client.listTools();
  const echo = await client.callTool({ name: "echo", arguments: { message: "hello" } });
  const report = await client.callTool({ name: "report", arguments: {} }, { onprogress: (p) => progress.push(p.progress) });
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
