// A stand-in for a model's provider that speaks Anthropic's wire format: it asks
// for lua_eval once, then says what came of it.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Model {
  address: string
  close: () => void
}

export async function standIn(): Promise<Model> {
  const server = createServer((request, answer) => {
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString()))
    request.on('end', () => {
      const used = body.includes('"tool_result"')
      answer.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const send = (type: string, data: object) => answer.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
      send('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-5-5', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } } })
      if (used) {
        send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
        for (const text of ['It ', 'is ', '42.']) send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
      } else {
        send('content_block_start', { index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'lua_eval', input: {} } })
        send('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: '{"code":"return 6 * 7"}' } })
      }
      send('content_block_stop', { index: 0 })
      send('message_delta', { delta: { stop_reason: used ? 'end_turn' : 'tool_use', stop_sequence: null }, usage: { output_tokens: 5 } })
      send('message_stop', {})
      answer.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}
