// An MCP server that is used with the accounts of people: its authorization server is
// oidc-provider, with its own pages for login and consent. It prints its address when it
// listens, and ends with its standard input. It is at localhost, a site other than the hub's.
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { default: Provider } = await import(pathToFileURL(join(process.env.MODULES, 'oidc-provider/lib/index.js')))
const server = createServer()
await new Promise((done) => server.listen(0, '127.0.0.1', done))
const address = `http://localhost:${server.address().port}`
const resource = `${address}/mcp`

const provider = new Provider(address, {
  scopes: ['openid', 'offline_access', 'read'],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({ scope: 'read', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 3600 }),
      useGrantedResource: () => true,
    },
  },
  pkce: { required: () => true },
  cookies: { keys: ['a key of a test'] },
})
const oauth = provider.callback()

const json = (response, status, body, headers = {}) => response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))

/** Answers a request of the account of its token. */
function answer(account, { method, params }) {
  switch (method) {
    case 'initialize':
      return { result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tracker', version: '1' } } }
    case 'tools/list':
      return { result: { tools: [{ name: 'whoami', description: 'Tells whose account is used.', inputSchema: { type: 'object' } }] } }
    case 'tools/call':
      return { result: { content: [{ type: 'text', text: account }], structuredContent: { account } } }
    case 'ping':
      return { result: {} }
  }
  return { error: { code: -32601, message: 'no such method' } }
}

async function mcp(request, response) {
  let body = ''
  for await (const part of request) body += part
  const token = await provider.AccessToken.find(/^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '')
  if (!token?.isValid || token.aud !== resource) {
    return json(response, 401, {}, { 'WWW-Authenticate': `Bearer resource_metadata="${address}/.well-known/oauth-protected-resource/mcp", scope="read"` })
  }
  if (request.method !== 'POST') return response.writeHead(405).end()
  const message = JSON.parse(body)
  if (message.id === undefined) return response.writeHead(202).end()
  return json(response, 200, { jsonrpc: '2.0', id: message.id, ...answer(token.accountId, message) })
}

server.on('request', (request, response) => {
  const { pathname } = new URL(request.url, address)
  if (pathname === '/mcp') return void mcp(request, response)
  if (pathname === '/.well-known/oauth-protected-resource/mcp') {
    return void json(response, 200, { resource, authorization_servers: [address], scopes_supported: ['read'] })
  }
  oauth(request, response)
})
process.stdin.resume().on('end', () => process.exit(0))
console.log(address)
