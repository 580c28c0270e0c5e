// Uses the API through OpenAI's own library, and prints what it gets as JSON.
const { OpenAI } = require("openai");

const client = new OpenAI({ baseURL: process.env.API + "/v1", apiKey: process.env.KEY, maxRetries: 2 });
const ask = (content) => ({ model: "luanette", messages: [{ role: "user", content }] });

async function main() {
  const got = {};
  got.models = (await client.models.list()).data.map((m) => m.id);
  got.model = (await client.models.retrieve("luanette")).owned_by;

  const whole = await client.chat.completions.create(ask("what time is it?"));
  got.whole = whole.choices[0].message.content;
  got.tokens = whole.usage.total_tokens > 0;

  got.pieces = [];
  const stream = await client.chat.completions.create({ ...ask("what time is it?"), stream: true, stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    got.pieces.push(chunk.choices[0]?.delta.content ?? (chunk.usage ? "usage" : chunk.choices[0].finish_reason));
  }

  const tools = [{
    type: "function",
    function: {
      name: "weather", description: "Tells the weather.", parse: JSON.parse,
      parameters: { type: "object", properties: { city: { type: "string" } } },
      function: ({ city }) => "sunny in " + city,
    },
  }];
  got.tools = await client.chat.completions.runTools({ ...ask("weather and time?"), tools }).finalContent();
  got.streamedTools = await client.chat.completions.runTools({ ...ask("weather and time?"), tools, stream: true }).finalContent();

  const picture = "data:image/png;base64,iVBORw0KGgo=";
  const seen = await client.chat.completions.create(ask([{ type: "text", text: "what is on this picture?" }, { type: "image_url", image_url: { url: picture } }]));
  got.seen = seen.choices[0].message.content;
  const drawn = await client.chat.completions.create(ask("draw a clock"));
  got.drawn = [drawn.choices[0].message.content, drawn.choices[0].message.images[0].image_url.url === picture];
  got.streamedImages = 0;
  for await (const chunk of await client.chat.completions.create({ ...ask("draw a clock"), stream: true })) {
    got.streamedImages += chunk.choices[0].delta.images?.length ?? 0;
  }
  try {
    await client.chat.completions.create(ask([{ type: "image_url", image_url: { url: "https://example.com/a.png" } }]));
  } catch (error) {
    got.remote = [error.constructor.name, error.status, error.param];
  }

  try {
    await client.chat.completions.create({ ...ask("hi"), model: "gpt-5" });
  } catch (error) {
    got.noModel = [error.constructor.name, error.status, error.code, error.param];
  }
  try {
    await new OpenAI({ baseURL: process.env.API + "/v1", apiKey: "guess" }).models.list();
  } catch (error) {
    got.wrongKey = [error.constructor.name, error.status, error.code, error.type];
  }
  try {
    await client.chat.completions.create({ ...ask("fail after a call") });
  } catch (error) {
    got.failed = [error.constructor.name, error.status, error.code];
  }
  console.log(JSON.stringify(got));
}

main();
