// A server of the TypeScript SDK, first generation, which speaks the sessions era over
// stdio: node server1.js NODE_MODULES.
const { createRequire } = require("node:module");
const load = createRequire(process.argv[2] + "/x.js");
const { McpServer } = load("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load("@modelcontextprotocol/sdk/server/stdio.js");

const text = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
const server = new McpServer({ name: "far", version: "1" }, { capabilities: { tools: {}, logging: {} } });
server.registerTool("push", {}, async () => text({
  name: await server.server.elicitInput({
    message: "Name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } },
  }),
  capital: await server.server.createMessage({
    maxTokens: 9, messages: [{ role: "user", content: { type: "text", text: "?" } }],
  }),
  roots: await server.server.listRoots(),
}));
server.registerTool("report", {}, async (extra) => {
  const progressToken = extra._meta?.progressToken;
  for (const progress of [1, 2]) {
    await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 2 } });
  }
  await extra.sendNotification({ method: "notifications/message", params: { level: "warning", data: "from far" } });
  return text("reported");
});
server.connect(new StdioServerTransport());
