// A fake model with Anthropic's wire format: it calls lua_eval once, then answers with
// text. It says whether it got an image, and never ends a story.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Model {
  address: string
  close: () => void
}

export async function fakeModel(): Promise<Model> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString()))
    request.on('end', () => {
      const used = body.includes('"tool_result"')
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const send = (type: string, data: object) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
      send('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-5-5', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } } })
      if (body.includes('tell a story') || body.includes('what is on this picture')) {
        const text = body.includes('tell a story') ? 'Once upon a time' : body.includes('"type":"image"') ? 'I see a dot.' : 'I see nothing.'
        send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
        send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
        if (body.includes('tell a story')) return
      } else if (used) {
        send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
        for (const text of ['It ', 'is ', '42.']) send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
      } else {
        send('content_block_start', { index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'lua_eval', input: {} } })
        send('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: '{"code":"return 6 * 7"}' } })
      }
      send('content_block_stop', { index: 0 })
      send('message_delta', { delta: { stop_reason: used || body.includes('picture') ? 'end_turn' : 'tool_use', stop_sequence: null }, usage: { output_tokens: 5 } })
      send('message_stop', {})
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}
