// A server that requires keys, and definitions that await review.
import { expect, test, type Page } from '@playwright/test'
import { failOnPageErrors, look, open, serverRow, shots } from './page'
import { Server } from './server'

const behind = new Server()
let front: Server
let admin = ''

/** Creates a key and returns its token. */
async function createKey(name: string, ...scopes: string[]): Promise<string> {
  const output = await front.run('key', 'create', name, ...scopes.flatMap((s) => ['--scope', s]), '--json')
  return (JSON.parse(output) as { token: string }).token
}

async function logIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key').fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
}

test.beforeAll(async () => {
  const upstream = await behind.start()
  front = new Server(`[upstreams.far]\nurl = "${upstream}/mcp"\ntrust = "pin"\n`)
  admin = await createKey('boss', 'read', 'mcp', 'chat', 'admin')
  front.key = admin
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  await behind.remove()
})

failOnPageErrors(() => front)

test('log in with a wrong key and a right key, and log out', async ({ page }) => {
  await open(page, front, 'overview')
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await look(page, 'login')
  await logIn(page, 'lnt_nonsense')
  await expect(page.getByRole('alert')).toBeVisible()
  await logIn(page, admin)
  await expect(serverRow(page, 'far')).toBeVisible()
  await expect(page.getByText('boss')).toBeVisible()
  await expect(page.getByRole('status').filter({ hasText: 'live' })).toBeVisible()
  await page.reload() // the session survives a reload
  await expect(serverRow(page, 'far')).toBeVisible()
  expect(await page.evaluate(() => document.cookie)).toBe('') // the cookie is HttpOnly
  await page.getByRole('button', { name: 'Log out' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await page.reload()
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
})

test('revoking a key ends its sessions', async ({ page }) => {
  const temporary = await createKey('temporary', 'read', 'mcp')
  await open(page, front, 'overview')
  await logIn(page, temporary)
  await expect(serverRow(page, 'far')).toBeVisible()
  await front.run('key', 'revoke', 'temporary')
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await logIn(page, temporary)
  await expect(page.getByRole('alert')).toBeVisible()
})

test('a key without the scope read gets no live events', async ({ page }) => {
  const caller = await createKey('caller', 'mcp')
  await open(page, front, 'settings')
  const refused: string[] = []
  page.on('response', (r) => { if (r.url().includes('/api/v1/events')) refused.push(r.url()) })
  await logIn(page, caller)
  await expect(page.getByRole('status').filter({ hasText: 'not live' })).toBeVisible()
  await expect(page.getByText(/^healthy version \S+$/)).toBeVisible()
  expect(refused).toEqual([])
})

test('changes require the CSRF token of the session', async ({ page }) => {
  await open(page, front, 'overview')
  await logIn(page, admin)
  await expect(serverRow(page, 'far')).toBeVisible()
  const forged = await page.evaluate(async () => {
    const send = (headers: Record<string, string>) => fetch('/api/v1/keys', { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: '{"name":"forged"}' })
    return [(await send({})).status, (await send({ 'X-CSRF-Token': 'guessed' })).status, (await fetch('/api/v1/logout', { method: 'POST' })).status]
  })
  expect(forged).toEqual([403, 403, 403])
  expect(await front.run('key', 'list')).not.toContain('forged')
})

test('a new login in another tab does not break this one', async ({ page }) => {
  await open(page, front, 'servers')
  await logIn(page, admin)
  await expect(page.getByRole('table', { name: 'Servers' })).toBeVisible()
  await page.evaluate(async (key) => { // as another tab does
    await fetch('/api/v1/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) })
  }, admin)
  await page.getByRole('row').filter({ hasText: 'far' }).getByRole('button', { name: 'Refresh' }).click()
  await expect(page.getByText('far: tools refreshed')).toBeVisible()
})

test('an administrator creates and revokes keys', async ({ page }) => {
  await open(page, front, 'people')
  await logIn(page, admin)
  await page.getByLabel('Name of a new key').fill('robot')
  await page.getByRole('button', { name: 'Create key' }).click()
  const made = page.getByRole('dialog', { name: 'The key robot' })
  const token = await made.locator('.secret').innerText()
  await page.keyboard.press('Escape') // not before it is stored
  await expect(made).toBeVisible()
  await made.getByLabel('I have stored the key').check()
  await made.getByRole('button', { name: 'Continue' }).click()
  const status = () => fetch(`${front.address}/api/v1/me`, { headers: { Authorization: `Bearer ${token}` } }).then((a) => a.status)
  expect(await status()).toBe(200)
  await page.screenshot({ path: `${shots}/keys.png`, fullPage: true })
  await page.getByRole('button', { name: 'Revoke robot' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'robot' })).toContainText('revoked')
  expect(await status()).toBe(401)
})

test('the first key signs this browser in, and its token stays until it is stored', async ({ page }) => {
  const fresh = new Server()
  await fresh.start()
  try {
    await page.request.get(await fresh.signInLink())
    const refused: string[] = []
    page.removeAllListeners('request')
    page.on('response', (r) => { if (r.status() === 404) refused.push(r.url()) })
    await open(page, fresh, 'people/people')
    await expect(page.getByRole('region', { name: 'People' })).toContainText('[identity.corp]')
    await page.getByRole('navigation', { name: 'People and keys' }).getByRole('link', { name: 'Keys' }).click()
    await look(page, 'first-key')
    await page.getByLabel('Name of a new key').fill('boss')
    await page.getByRole('button', { name: 'Create key' }).click()
    const made = page.getByRole('dialog', { name: 'The key boss' })
    const token = await made.locator('.secret').innerText()
    await expect(page.getByRole('heading', { level: 1, name: 'People and keys', includeHidden: true })).toBeAttached()
    await look(page, 'first-key-made')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await expect(made).toContainText(token)
    await made.getByLabel('I have stored the key').check()
    await made.getByRole('button', { name: 'Continue' }).click()
    await expect(page.getByRole('row').filter({ hasText: 'boss' })).toContainText('do everything')
    await page.reload()
    await expect(page.getByRole('row').filter({ hasText: 'boss' })).toBeVisible()
    expect(await page.evaluate(() => fetch('/api/v1/me').then((r) => r.status))).toBe(200)
    expect((await fetch(`${fresh.address}/api/v1/me`)).status).toBe(401)
    expect(refused).toEqual([])
    await open(page, fresh, 'timeline')
    await expect(page.getByText('set enabled = true in [music]')).toBeVisible()
    await expect(page.getByRole('link', { name: 'Timeline' })).toHaveCount(0)
  } finally {
    await fresh.remove()
  }
})

test('definitions await review by an administrator', async ({ page }) => {
  await open(page, front, 'approvals')
  await logIn(page, admin)
  const waiting = page.getByRole('region', { name: 'Waiting' })
  await waiting.getByRole('link', { name: /far\.job_stats/ }).click()
  const card = page.getByRole('article', { name: 'definition of far.job_stats' })
  await expect(card).toContainText('awaiting review')
  await expect(page.getByRole('navigation').getByRole('link', { name: /Approvals \d+ to decide/ })).toBeVisible()
  await page.screenshot({ path: `${shots}/review.png`, fullPage: true })
  await card.getByRole('button', { name: 'Approve' }).click()
  await expect(waiting.getByRole('link', { name: /far\.job_stats/ })).toHaveCount(0)
  const decided = page.getByRole('table', { name: 'Recent decisions' }).getByRole('row')
  await expect(decided.filter({ hasText: 'far.job_stats' })).toContainText('approved')
  await expect.poll(async () => JSON.stringify(await front.call('search_tools', { query: 'job_stats', namespace: 'far' }))).toContain('far.job_stats')
  await page.getByRole('button', { name: 'Approve all of far' }).click()
  await expect(page.getByText(/\d+ approved, \d+ not approved/)).toBeVisible()

  // A changed definition is shown with the changes marked.
  const publish = async (description: string, params: string) => {
    const { hash } = await behind.call('script_store', { content: `function describe() return {name = "shifty", description = "${description}", params = {${params}}} end function main() return 1 end` })
    await behind.call('script_publish', { script_hash: hash })
  }
  await publish('Says one.', 'how = {type = "string", description = "loud or quiet"}')
  const shifty = page.getByRole('article', { name: 'definition of far.shifty' })
  await waiting.getByRole('link', { name: /far\.shifty/ }).click()
  await expect(shifty.getByRole('row').filter({ hasText: 'how' })).toContainText('loud or quiet')
  await shifty.getByRole('button', { name: 'Approve' }).click()
  await expect(decided.filter({ hasText: 'far.shifty' })).toContainText('approved')
  await publish('Says two.', 'where = {type = "string", description = "the room"}')
  await waiting.getByRole('link', { name: /far\.shifty/ }).click()
  await expect(shifty.locator('p del')).toHaveText('one.')
  await expect(shifty.locator('p ins')).toHaveText('two.')
  await expect(shifty.getByRole('row').filter({ hasText: 'how' })).toContainText('removed')
  await expect(shifty.getByRole('row').filter({ hasText: 'where' })).toContainText('added')
  await page.screenshot({ path: `${shots}/changed.png`, fullPage: true })
  await page.keyboard.press('d')
  await expect(decided.filter({ hasText: 'far.shifty' })).toContainText('refused')
})
