// People sign in at a real provider (oidc-provider) in a real browser. In the middle of each
// flow the server is killed and started again at its address: the flow goes on.
import { expect, test, type Page } from '@playwright/test'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type Server as HTTPServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { ownAddress, Server } from './server'

const modules = resolve(process.env.LUANETTE_TEST_SERVERS ?? '../servers/node_modules')
const binary = process.env.LUANETTE ?? '../../bin/luanette'
let provider: ChildProcess
let hub: Server

test.beforeAll(async () => {
  const address = ownAddress()
  provider = spawn(`${modules}/.bin/node`, ['../../internal/access/identity/testdata/provider.mjs'], {
    env: { PATH: process.env.PATH ?? '', MODULES: modules, HUB: address, CLIENT_ID: 'hub', CLIENT_SECRET: 'secret' }, stdio: ['pipe', 'pipe', 'inherit'],
  })
  const issuer = await new Promise<string>((found, failed) => {
    createInterface({ input: provider.stdout! }).once('line', found)
    provider.once('exit', () => failed(new Error('the provider exited')))
  })
  hub = new Server(`public_url = "${address}"
[people]
registration = true
[identity.real]
issuer = "${issuer}"
client_id = "hub"
client_secret = "\${env:HUB_SECRET}"
scopes = ["profile", "email", "groups"]
[identity.real.groups]
"hub-users" = ["author"]
`, { HUB_SECRET: 'secret' })
  hub.address = address
  await hub.start()
})

test.afterAll(async () => {
  await hub?.remove()
  provider?.kill()
})

/** Kills the server and starts it again. */
async function crash(): Promise<void> {
  await hub.stop('SIGKILL')
  await hub.start()
}

/** Logs in at the provider's page, and consents there if it asks. */
async function logIn(page: Page, name: string, between: () => Promise<void> = async () => {}): Promise<void> {
  await page.locator('input[name="login"]').fill(name)
  await page.locator('input[name="password"]').fill('any')
  await between()
  await page.locator('button[type="submit"]').click()
  const back = page.waitForURL((url) => url.href.startsWith(hub.address))
  const consent = page.locator('input[name="prompt"][value="consent"]')
  await Promise.race([back, consent.waitFor({ state: 'attached' })])
  if (!page.url().startsWith(hub.address)) await page.locator('button[type="submit"]').click()
  await back
}

interface Me { id: string; name: string; csrf_token: string }

/** Who the browser is to the server. */
function me(page: Page): Promise<Me> {
  return page.evaluate(async () => (await (await fetch('/api/v1/me')).json()) as Me)
}

interface Grants { grants: { name: string }[] }

function grants(page: Page): Promise<string[]> {
  return page.evaluate(async () => ((await (await fetch('/api/v1/me/grants')).json()) as Grants).grants.map((g) => g.name))
}

test('signing in goes on after the server was killed', async ({ page }) => {
  await page.goto(`${hub.address}/signin`)
  await logIn(page, 'bea', crash)
  await page.waitForURL((url) => url.pathname === '/')
  const first = await me(page)
  expect(first.name).toBe('Person bea')
  await crash()
  await page.reload() // the session is stored
  expect((await me(page)).id).toBe(first.id)
})

test('a browser that comes back while the server is down signs in by loading the page again', async ({ page }) => {
  await page.goto(`${hub.address}/signin`)
  await page.locator('input[name="login"]').fill('cleo')
  await page.locator('input[name="password"]').fill('any')
  await page.locator('button[type="submit"]').click()
  await page.locator('input[name="prompt"][value="consent"]').waitFor({ state: 'attached' })
  await hub.stop('SIGKILL')
  const down = page.waitForEvent('requestfailed', (r) => r.url().includes('/signin/callback'))
  await page.locator('button[type="submit"]').click()
  const callback = (await down).url()
  await hub.start()
  await page.goto(callback)
  await page.waitForURL((url) => url.pathname === '/')
  expect((await me(page)).name).toBe('Person cleo')
  await page.goto(callback) // it counts once
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  expect(page.url()).toContain('/signin/callback')
})

/** A client that waits for its code. */
class Client {
  private readonly http: HTTPServer
  readonly verifier = randomBytes(32).toString('base64url')
  redirect = ''
  id = ''
  private arrived!: (query: URLSearchParams) => void
  readonly answer = new Promise<URLSearchParams>((done) => { this.arrived = done })

  constructor() {
    this.http = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://localhost')
      if (url.pathname === '/back') this.arrived(url.searchParams)
      response.end('the client has its code')
    })
  }

  async register(): Promise<void> {
    await new Promise<void>((done) => this.http.listen(0, '127.0.0.1', done))
    this.redirect = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/back`
    const answer = await fetch(`${hub.address}/oauth/register`, { method: 'POST', body: JSON.stringify({ client_name: 'An app', redirect_uris: [this.redirect] }) })
    this.id = ((await answer.json()) as { client_id: string }).client_id
  }

  link(): string {
    const challenge = createHash('sha256').update(this.verifier).digest('base64url')
    return `${hub.address}/oauth/authorize?` + new URLSearchParams({
      response_type: 'code', client_id: this.id, redirect_uri: this.redirect, state: 'its state', scope: 'mcp read',
      code_challenge: challenge, code_challenge_method: 'S256', resource: `${hub.address}/mcp`,
    })
  }

  async token(form: Record<string, string>): Promise<{ status: number; access_token: string; refresh_token: string; error?: string }> {
    const answer = await fetch(`${hub.address}/oauth/token`, { method: 'POST', body: new URLSearchParams({ client_id: this.id, ...form }) })
    return { status: answer.status, ...(await answer.json()) as { access_token: string; refresh_token: string } }
  }

  close(): void {
    this.http.closeAllConnections()
    this.http.close()
  }
}

test('a client gets its tokens although the server was killed before and after the consent', async ({ page }) => {
  const client = new Client()
  await client.register()
  try {
    await page.goto(client.link())
    await logIn(page, 'dora', crash)
    await expect(page.getByRole('heading', { name: 'Allow An app?' })).toBeVisible()
    await crash()
    await page.getByRole('button', { name: 'Allow' }).click()
    const answer = await client.answer
    expect([answer.get('state'), answer.get('iss')]).toEqual(['its state', hub.address])
    await crash()
    const exchange = { grant_type: 'authorization_code', code: answer.get('code')!, redirect_uri: client.redirect, code_verifier: client.verifier, resource: `${hub.address}/mcp` }
    const first = await client.token(exchange)
    expect(first.status).toBe(200)
    await crash()
    hub.key = first.access_token
    await hub.initialize('an app', '1')
    const second = await client.token({ grant_type: 'refresh_token', refresh_token: first.refresh_token })
    expect(second.status).toBe(200)
    await page.goto(hub.address)
    expect(await grants(page)).toEqual(['An app'])
    expect((await client.token(exchange)).error).toBe('invalid_grant') // a code that comes twice ends all
    expect(await grants(page)).toEqual([])
  } finally {
    hub.key = ''
    client.close()
  }
})

test('the command line signs in although the server was killed while it waited', async ({ page }) => {
  const command = spawn(binary, ['login', hub.address], { env: { PATH: process.env.PATH ?? '', HOME: hub.folder }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const printed = (part: RegExp) => expect.poll(() => output, { timeout: 120_000 }).toMatch(part)
  for (const stream of [command.stdout, command.stderr]) stream.on('data', (data: Buffer) => { output += data.toString() })
  const ended = new Promise<number | null>((done) => command.once('exit', done))
  await printed(/http\S+/)
  await crash()
  await page.goto(/http\S+/.exec(output.slice(output.indexOf('\n')))![0])
  await logIn(page, 'erin', crash)
  const code = /the code (\S+)/.exec(output)![1]
  await expect(page.getByText(code)).toBeVisible()
  await crash()
  await page.getByRole('button', { name: 'Allow' }).click()
  await crash()
  expect(await ended, output).toBe(0)
  const who = await hub.run('who', '--server', hub.address)
  expect(who).toContain('Person erin')
})
