// People sign in at a real provider (oidc-provider) in a real browser. In the middle of each
// flow the server is killed and started again at its address: the flow goes on.
import { type Browser, expect, test, type Page } from '@playwright/test'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type Server as HTTPServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { ownAddress, Server } from './server'

const modules = resolve(process.env.LUANETTE_TEST_SERVERS ?? '../servers/node_modules')
const binary = process.env.LUANETTE ?? '../../bin/luanette'
const programs: ChildProcess[] = []
let hub: Server

/** Starts a program of Node, and returns the address that it prints. */
function startProgram(file: string, env: Record<string, string>): Promise<string> {
  const program = spawn(`${modules}/.bin/node`, [file], { env: { PATH: process.env.PATH ?? '', MODULES: modules, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  programs.push(program)
  return new Promise((found, failed) => {
    createInterface({ input: program.stdout! }).once('line', found)
    program.once('exit', () => failed(new Error(`${file} exited`)))
  })
}

test.beforeAll(async () => {
  const address = ownAddress()
  const issuer = await startProgram('../../internal/access/identity/identitytest/provider.mjs', { HUB: address, CLIENT_ID: 'hub', CLIENT_SECRET: 'secret' })
  const tracker = await startProgram('tracker.mjs', {})
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
[upstreams.tracker]
url = "${tracker}/mcp"
login = "each"
`, { HUB_SECRET: 'secret' })
  hub.address = address
  await hub.start()
})

test.afterAll(async () => {
  await hub?.remove()
  for (const program of programs) program.kill()
})

/** Kills the server and starts it again. */
async function crash(): Promise<void> {
  await hub.stop('SIGKILL')
  await hub.start()
}

/** Logs in at the page of a provider. */
async function enter(page: Page, name: string, between: () => Promise<void> = async () => {}): Promise<void> {
  await page.locator('input[name="login"]').fill(name)
  await page.locator('input[name="password"]').fill('any')
  await between()
  await page.locator('button[type="submit"]').click()
}

/** Logs in at the page of a provider, and consents there if it asks. */
async function logIn(page: Page, name: string, between?: () => Promise<void>): Promise<void> {
  await enter(page, name, between)
  const back = page.waitForURL((url) => url.href.startsWith(hub.address))
  const consent = page.locator('input[name="prompt"][value="consent"]')
  await Promise.race([back, consent.waitFor({ state: 'attached' })])
  if (!page.url().startsWith(hub.address)) await page.locator('button[type="submit"]').click()
  await back
}

/** Logs in and consents while the server is down. Returns the address at which the browser did not reach it, and another page of the browser: the first would load the address again by itself. */
async function logInWhileDown(page: Page, name: string, path: string): Promise<[string, Page]> {
  await enter(page, name)
  await page.locator('input[name="prompt"][value="consent"]').waitFor({ state: 'attached' })
  await hub.stop('SIGKILL')
  const down = page.waitForEvent('requestfailed', (r) => r.url().includes(path))
  await page.locator('button[type="submit"]').click()
  const address = (await down).url()
  const next = await page.context().newPage()
  await page.close()
  await hub.start()
  return [address, next]
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

test('a browser that comes back while the server is down signs in by loading the page again', async ({ page: first }) => {
  await first.goto(`${hub.address}/signin`)
  const [callback, page] = await logInWhileDown(first, 'cleo', '/signin/callback')
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

/** A browser in which somebody has signed in, with a key of theirs for programs. */
class Person {
  private constructor(public page: Page, readonly key: string) {}

  static async signIn(browser: Browser, name: string): Promise<Person> {
    const page = await (await browser.newContext()).newPage()
    await page.goto(`${hub.address}/signin`)
    await logIn(page, name)
    await page.waitForURL((url) => url.pathname === '/')
    const { csrf_token: csrf } = await me(page)
    const key = await page.evaluate(async ({ csrf, name }) => {
      const answer = await fetch('/api/v1/me/keys', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf }, body: JSON.stringify({ name, scopes: ['mcp'] }) })
      return ((await answer.json()) as { token: string }).token
    }, { csrf, name: `program-of-${name}` })
    return new Person(page, key)
  }

  /** Opens the page of a login, and agrees. */
  async begin(link = `${hub.address}/connect/tracker`): Promise<void> {
    await this.page.goto(link)
    await this.page.getByRole('button', { name: 'Log in' }).click()
  }

  async done(): Promise<void> {
    await expect(this.page.getByRole('heading', { name: 'Logged in to tracker' })).toBeVisible()
  }

  async logins(): Promise<string[]> {
    await this.page.goto(hub.address)
    return this.page.evaluate(async () => ((await (await fetch('/api/v1/me/logins')).json()) as { logins: { upstream: string; state: string }[] }).logins.map((l) => `${l.upstream} ${l.state}`))
  }

  /** Whose account a call of the upstream's tool uses. */
  async account(): Promise<unknown> {
    hub.key = this.key
    try {
      return (await hub.call('call_tool', { name: 'tracker.whoami', arguments: {} })).account
    } catch (err) {
      return (err as Error).message
    } finally {
      hub.key = ''
    }
  }
}

test('people log in to an upstream with accounts of their own although the server was killed', async ({ browser }) => {
  const [ada, bob] = [await Person.signIn(browser, 'ada'), await Person.signIn(browser, 'bob')]
  expect(await ada.account()).toContain(`${hub.address}/connect/tracker`)
  await ada.begin()
  await logIn(ada.page, 'ada-there', crash)
  await ada.done()
  expect(await ada.account()).toBe('ada-there')
  await crash()
  expect(await ada.account()).toBe('ada-there') // the login is stored
  expect([await ada.logins(), await bob.logins()]).toEqual([['tracker active'], ['tracker none']])
  expect(await bob.account()).toContain('needs_auth')
  await bob.begin()
  await logIn(bob.page, 'bob-there')
  await bob.done()
  expect([await ada.account(), await bob.account()]).toEqual(['ada-there', 'bob-there'])
})

test('a login is not finished in the browser of somebody else', async ({ browser }) => {
  const [fay, gus] = [await Person.signIn(browser, 'fay'), await Person.signIn(browser, 'gus')]
  await fay.begin()
  const [callback, next] = await logInWhileDown(fay.page, 'fay-there', '/oauth/callback')
  fay.page = next
  const refused = gus.page.waitForResponse((r) => r.url().includes('/oauth/callback/finish'))
  await gus.page.goto(callback)
  expect((await refused).status()).toBe(403)
  await expect(gus.page.getByRole('heading', { name: 'Not logged in' })).toBeVisible()
  expect([await fay.logins(), await gus.logins()]).toEqual([['tracker none'], ['tracker none']])
  await fay.page.goto(callback) // nobody has used it up
  await fay.done()
  expect([await fay.account(), await gus.logins()]).toEqual(['fay-there', ['tracker none']])
})

interface Question { params: { mode: string; url: string } }
type Asked = (question: Question) => Promise<{ action: string }>
interface Called { structuredContent?: { account: string } }

const load = createRequire(`${modules}/x.js`)
const identity = { name: 'an app', version: '1' }
const elicits = { capabilities: { elicitation: { url: {} } } }
const call = { name: 'call_tool', arguments: { name: 'tracker.whoami', arguments: {} } }
const patience = { timeout: 170_000 }

/** Clients from npm that declare that they open pages. Each calls the upstream's tool. */
const clients: Record<string, (key: string, asked: Asked) => Promise<Called>> = {
  'of the sessions era': async (key, asked) => {
    const { Client } = load('@modelcontextprotocol/sdk/client/index.js')
    const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const { ElicitRequestSchema } = load('@modelcontextprotocol/sdk/types.js')
    const client = new Client(identity, elicits)
    client.setRequestHandler(ElicitRequestSchema, asked)
    await client.connect(new StreamableHTTPClientTransport(new URL(`${hub.address}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }))
    try {
      return await client.callTool(call, undefined, patience)
    } finally {
      await client.close()
    }
  },
  'without sessions': async (key, asked) => {
    const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client')
    const client = new Client(identity, { ...elicits, versionNegotiation: { mode: { pin: '2026-07-28' } } })
    client.setRequestHandler('elicitation/create', asked)
    await client.connect(new StreamableHTTPClientTransport(new URL(`${hub.address}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }))
    try {
      return await client.callTool(call, patience)
    } finally {
      await client.close()
    }
  },
}

for (const [era, callTracker] of Object.entries(clients)) {
  test(`a client ${era} shows the page of a login, and its call goes on`, async ({ browser }) => {
    const person = await Person.signIn(browser, `person-${era.replaceAll(' ', '-')}`)
    let questions = 0
    const result = await callTracker(person.key, async ({ params }) => {
      questions++
      expect([params.mode, params.url]).toEqual(['url', `${hub.address}/connect/tracker`])
      await person.begin(params.url)
      await logIn(person.page, `account ${era}`)
      await person.done()
      return { action: 'accept' }
    })
    expect([result.structuredContent?.account, questions]).toEqual([`account ${era}`, 1])
  })
}
