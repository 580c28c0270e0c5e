// An OpenID Connect provider that signs somebody in without asking.
import { createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Account {
  sub: string
  name: string
  email: string
  groups: string[]
}

export interface Provider {
  issuer: string
  account: Account // who is signed in from now on
  close: () => void
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const jwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'RS256' }

function token(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'RS256', kid: 'test', typ: 'JWT' })}.${part(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
}

export function startProvider(account: Account): Promise<Provider> {
  const begun = new Map<string, { nonce: string; client: string; account: Account }>()
  const json = (response: ServerResponse, body: object) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  const server = createServer(async (request, response) => {
    const at = new URL(request.url!, provider.issuer)
    if (at.pathname === '/.well-known/openid-configuration') {
      return json(response, {
        issuer: provider.issuer, authorization_endpoint: `${provider.issuer}/authorize`, token_endpoint: `${provider.issuer}/token`, jwks_uri: `${provider.issuer}/keys`,
        response_types_supported: ['code'], subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['RS256'], code_challenge_methods_supported: ['S256'],
      })
    }
    if (at.pathname === '/keys') return json(response, { keys: [jwk] })
    if (at.pathname === '/authorize') {
      const code = randomBytes(16).toString('hex')
      begun.set(code, { nonce: at.searchParams.get('nonce')!, client: at.searchParams.get('client_id')!, account: provider.account })
      const back = new URL(at.searchParams.get('redirect_uri')!)
      for (const [name, value] of Object.entries({ code, state: at.searchParams.get('state')!, iss: provider.issuer })) back.searchParams.set(name, value)
      return response.writeHead(302, { Location: back.href }).end()
    }
    let body = ''
    for await (const part of request) body += String(part)
    const flow = begun.get(new URLSearchParams(body).get('code') ?? '')
    if (!flow) return response.writeHead(400).end()
    const now = Math.floor(Date.now() / 1000)
    return json(response, { access_token: 'unused', token_type: 'Bearer', expires_in: 3600, id_token: token({ iss: provider.issuer, aud: flow.client, nonce: flow.nonce, iat: now, exp: now + 3600, email_verified: true, ...flow.account }) })
  })
  const provider: Provider = { issuer: '', account, close: () => server.close() }
  return new Promise((done) => server.listen(0, '127.0.0.1', () => {
    provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    done(provider)
  }))
}
