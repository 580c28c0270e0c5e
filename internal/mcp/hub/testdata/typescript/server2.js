// A server of the TypeScript SDK, second generation, which speaks both eras over stdio:
// node server2.js NODE_MODULES. Its tools are those of the Go server in eras_test.go.
const { createRequire } = require("node:module");
const load = createRequire(process.argv[2] + "/x.js");
const { McpServer, inputRequired } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");

const text = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
const form = { message: "Name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };
const sampling = { maxTokens: 9, messages: [{ role: "user", content: { type: "text", text: "?" } }] };

serveStdio(() => {
  const server = new McpServer({ name: "far", version: "1" }, { capabilities: { tools: {}, logging: {} } });
  server.registerTool("push", {}, async (ctx) => text({
    name: await ctx.mcpReq.elicitInput({ mode: "form", ...form }),
    capital: await ctx.mcpReq.requestSampling(sampling),
    roots: await server.server.listRoots(),
  }));
  server.registerTool("three", {}, async (ctx) => {
    const given = ctx.mcpReq.inputResponses;
    if (given && Object.keys(given).length === 3) return text(given);
    return inputRequired({ inputRequests: {
      name: inputRequired.elicit(form),
      capital: inputRequired.createMessage(sampling),
      roots: inputRequired.listRoots(),
    } });
  });
  server.registerTool("report", {}, async (ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [1, 2]) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 2 } });
    }
    await ctx.mcpReq.log("warning", "from far");
    return text("reported");
  });
  return server;
});
