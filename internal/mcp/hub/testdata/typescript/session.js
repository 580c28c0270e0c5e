// run connects a client of the TypeScript SDK, uses every tool of the test server, and
// prints what it received as one JSON object. callWithProgress calls a tool and passes
// each progress notification on; the two generations of the SDK differ in it.
exports.run = async function (client, transport, callWithProgress) {
  const progress = [];
  await client.connect(transport);
  const tools = await client.listTools();
  const echo = await client.callTool({ name: "echo", arguments: { message: "hello" } });
  const report = await callWithProgress({ name: "report", arguments: {} }, (p) => progress.push(p.progress));
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
};

// answer is the answer to every question of the server.
exports.answer = async () => ({ action: "accept", content: { name: "Ada" } });
