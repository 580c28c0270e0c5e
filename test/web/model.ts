// A fake model with Anthropic's wire format. What a person asks decides what it says; by
// default it calls lua_eval once and then answers. It never ends a story.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Model {
  address: string
  asked: () => Asked // the last request
  close: () => void
}

export interface Asked {
  model: string
  text: string
}

interface Block {
  type: string
  text?: string
  content?: string | Block[]
}

interface Step {
  say?: string
  use?: { name: string; input: object }
  endless?: boolean
}

export const hostile = [
  '<script>document.title = "owned"</script>',
  '<img src=x onerror="document.title=\'owned\'">',
  '[link](javascript:document.title="owned")',
  '<a href="data:text/html,<script>1</script>">data</a>',
  '![pixel](https://tracker.example/pixel.png)',
  '<img src="https://tracker.example/raw.png" alt="raw">',
  '<svg onload="document.title=\'owned\'"><style>body{display:none}</style></svg>',
  '<iframe src="https://tracker.example"></iframe><form action="https://tracker.example"><button>send</button></form>',
  '<p style="background:url(https://tracker.example/b.png)" onclick="document.title=\'owned\'">styled</p>',
  'the end of it',
].join('\n\n')

export const markdown = `## What I found

The **slowest** tool is \`far.lua_eval\`:

| tool | calls | p95 |
|---|---|---|
| \`far.lua_eval\` | 42 | 120 ms |
| \`far.job_poll\` | 7 | 30 ms |

1. It compiles the script.
2. It runs it, [as documented](https://example.com/docs).

\`\`\`lua
-- the slowest first
function main(params)
  local n = params.limit or 10
  return mcp.far.job_stats{limit = n}
end
\`\`\`

> Times are of the last hour.
`

function stepFor(question: string, result: string | undefined, sawImage: boolean): Step {
  if (question.includes('tell a story')) return { say: 'Once upon a time', endless: true }
  if (question.includes('what is on this picture')) return { say: sawImage ? 'I see a dot.' : 'I see nothing.' }
  if (question.includes('as Markdown')) return { say: markdown }
  if (question.includes('hostile')) return { say: hostile }
  if (question.includes('with a script')) return result === undefined ? { use: { name: 'lua_eval', input: { code: 'return mcp.gallery.words{}' } } } : { say: 'It waits for your decision.' }
  if (question.includes('read the words to me')) return result === undefined ? { use: { name: 'gallery__words', input: {} } } : { say: `I got this: ${result}` }
  const shown = /show me (\w+)/.exec(question)
  if (shown) return result === undefined ? { use: { name: `gallery__${shown[1]}`, input: {} } } : { say: sawImage ? 'Here it is, and I see it too.' : 'Here it is.' }
  return result === undefined ? { use: { name: 'lua_eval', input: { code: 'return 6 * 7' } } } : { say: 'It is 42.' }
}

export async function fakeModel(): Promise<Model> {
  let asked: Asked = { model: '', text: '' }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString()))
    request.on('end', () => {
      const { model, messages } = JSON.parse(body) as { model: string; messages: { role: string; content: string | Block[] }[] }
      const blocks = (m: { content: string | Block[] }) => (typeof m.content === 'string' ? [{ type: 'text', text: m.content }] : m.content)
      const asks = messages.filter((m) => m.role === 'user' && blocks(m).some((b) => b.type !== 'tool_result'))
      const question = blocks(asks[asks.length - 1]).map((b) => b.text ?? '').join(' ')
      const last = blocks(messages[messages.length - 1]).find((b) => b.type === 'tool_result')
      const result = last && (typeof last.content === 'string' ? last.content : (last.content ?? []).map((b) => b.text ?? '').join(' '))
      const step = stepFor(question, result, JSON.stringify(messages.slice(messages.indexOf(asks[asks.length - 1]))).includes('"type":"image"'))
      asked = { model, text: question }
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const send = (type: string, data: object) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
      send('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } } })
      if (step.use) {
        send('content_block_start', { index: 0, content_block: { type: 'tool_use', id: `toolu_${messages.length}`, name: step.use.name, input: {} } })
        send('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: JSON.stringify(step.use.input) } })
      } else {
        send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
        for (const text of step.say!.match(/[\s\S]{1,20}/g) ?? []) send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
        if (step.endless) return
      }
      send('content_block_stop', { index: 0 })
      send('message_delta', { delta: { stop_reason: step.use ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } })
      send('message_stop', {})
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked, close: () => server.close() }
}
