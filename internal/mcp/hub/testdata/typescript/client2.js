// A client of the TypeScript SDK, second generation, uses the hub:
// node client2.js NODE_MODULES URL MODE, where MODE is legacy, auto or modern.
const { createRequire } = require("node:module");
const { run, answer } = require("./session.js");
const [modules, url, mode] = process.argv.slice(2);
const load = createRequire(modules + "/x.js");
const { Client, StreamableHTTPClientTransport } = load("@modelcontextprotocol/client");

const client = new Client(
  { name: "test", version: "1" },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    versionNegotiation: { mode: mode === "modern" ? { pin: "2026-07-28" } : mode },
  },
);
client.setRequestHandler("elicitation/create", answer);
const callWithProgress = (call, onprogress) => client.callTool(call, { onprogress });

run(client, new StreamableHTTPClientTransport(new URL(url)), callWithProgress).catch((e) => {
  console.error(e);
  process.exit(1);
});
