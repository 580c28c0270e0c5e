// A fake MCP server whose tools return every kind of content that the page can show.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** 0.1 s of silence. */
export function wav(): Buffer {
  const samples = 800
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8000, 24)
  head.writeUInt32LE(8000, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples, 40)
  return Buffer.concat([head, Buffer.alloc(samples, 128)])
}

/** Three notes, one after the other; the last two in running status. */
export function midi(): Buffer {
  const track = Buffer.from([0, 0x90, 60, 100, 96, 60, 0, 0, 64, 100, 96, 64, 0, 0, 67, 100, 96, 67, 0, 0, 0xff, 0x2f, 0])
  const size = Buffer.alloc(4)
  size.writeUInt32BE(track.length)
  return Buffer.concat([Buffer.from('MThd\0\0\0\x06\0\0\0\x01\0\x60', 'binary'), Buffer.from('MTrk'), size, track])
}

const answers: Record<string, object> = {
  words: { content: [{ type: 'text', text: 'plain <b>words</b>' }] },
  tree: { content: [{ type: 'text', text: '{"a":{"b":[1,2,3]}}' }], structuredContent: { a: { b: [1, 2, 3] }, made: 'artifact_0123456789ab' } },
  picture: { content: [{ type: 'image', data: png, mimeType: 'image/png' }] },
  sound: { content: [{ type: 'audio', data: wav().toString('base64'), mimeType: 'audio/wav' }] },
  tune: { content: [{ type: 'resource', resource: { uri: 'file:///tune.mid', mimeType: 'audio/midi', blob: midi().toString('base64') } }] },
  broken: { content: [{ type: 'text', text: 'it did not work' }], isError: true },
}

export interface Upstream {
  address: string
  close: () => void
}

/** Handles the paths of an authorization server that grants every request; `token` is the access token it issues. */
function authorize(url: URL, address: string, token: string, response: ServerResponse): boolean {
  const send = (status: number, body: object) => void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  switch (url.pathname) {
    case '/.well-known/oauth-protected-resource':
    case '/.well-known/oauth-protected-resource/mcp':
      send(200, { resource: `${address}/mcp`, authorization_servers: [address], scopes_supported: ['look'] })
      return true
    case '/.well-known/oauth-authorization-server':
      send(200, { issuer: address, authorization_endpoint: `${address}/authorize`, token_endpoint: `${address}/token`, registration_endpoint: `${address}/register`, response_types_supported: ['code'], grant_types_supported: ['authorization_code'], code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'], authorization_response_iss_parameter_supported: true })
      return true
    case '/register':
      send(201, { client_id: 'hud', redirect_uris: [], token_endpoint_auth_method: 'none' })
      return true
    case '/authorize': {
      const back = new URL(url.searchParams.get('redirect_uri')!)
      back.search = new URLSearchParams({ code: 'agreed', state: url.searchParams.get('state')!, iss: address }).toString()
      response.writeHead(302, { Location: back.toString() }).end()
      return true
    }
    case '/token':
      send(200, { access_token: token, token_type: 'Bearer', expires_in: 3600, scope: 'look' })
      return true
  }
  return false
}

/** Starts the server. With a token it requires a login. */
export async function upstream(token = ''): Promise<Upstream> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (data: Buffer) => (body += data.toString()))
    request.on('end', () => {
      const address = `http://${request.headers.host}`
      if (token && authorize(new URL(request.url!, address), address, token, response)) return
      if (token && request.headers.authorization !== `Bearer ${token}`) {
        return void response.writeHead(401, { 'WWW-Authenticate': `Bearer resource_metadata="${address}/.well-known/oauth-protected-resource"` }).end()
      }
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const message = JSON.parse(body) as { id?: number; method: string; params?: { name?: string; protocolVersion?: string } }
      if (message.id === undefined) return void response.writeHead(202).end()
      const send = (reply: object) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...reply }))
      switch (message.method) {
        case 'initialize':
          return void send({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'gallery', version: '1' } } })
        case 'tools/list':
          return void send({ result: { tools: Object.keys(answers).map((name) => ({ name, description: `Answers with ${name}.`, inputSchema: { type: 'object', properties: { size: { type: 'integer', description: 'how large' }, loud: { type: 'boolean' }, kind: { enum: ['a', 'b'] }, more: { type: 'object' } } } })) } })
        case 'tools/call':
          return void send({ result: answers[message.params?.name ?? ''] ?? { isError: true, content: [] } })
        case 'ping':
          return void send({ result: {} })
        default:
          return void send({ error: { code: -32601, message: 'no such method' } })
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => { server.closeAllConnections(); server.close() } }
}
