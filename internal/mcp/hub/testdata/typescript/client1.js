// A client of the TypeScript SDK, first generation, uses the hub:
// node client1.js NODE_MODULES URL TRANSPORT, where TRANSPORT is http or sse.
const { createRequire } = require("node:module");
const { run, answer } = require("./session.js");
const [modules, url, transport] = process.argv.slice(2);
const load = createRequire(modules + "/x.js");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = load("@modelcontextprotocol/sdk/client/sse.js");
const { ElicitRequestSchema } = load("@modelcontextprotocol/sdk/types.js");

const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, answer);
const Transport = transport === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;
const callWithProgress = (call, onprogress) => client.callTool(call, undefined, { onprogress });

run(client, new Transport(new URL(url)), callWithProgress).catch((e) => {
  console.error(e);
  process.exit(1);
});
