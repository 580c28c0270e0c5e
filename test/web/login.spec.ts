// A server that wants keys, and definitions that wait for an administrator.
import { AxeBuilder } from '@axe-core/playwright'
import { expect, test, type Page } from '@playwright/test'
import { guard, open, shots } from './guard'
import { House } from './house'

const behind = new House()
let front: House
let admin = ''

/** Makes a key and returns its token. */
async function make(name: string, ...scopes: string[]): Promise<string> {
  const said = await front.run('key', 'create', name, ...scopes.flatMap((s) => ['--scope', s]), '--json')
  return (JSON.parse(said) as { token: string }).token
}

async function enter(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key').fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
}

test.beforeAll(async () => {
  const upstream = await behind.start()
  front = new House(`[upstreams.far]\nurl = "${upstream}/mcp"\ntrust = "pin"\n`)
  admin = await make('boss', 'read', 'mcp', 'chat', 'admin')
  front.key = admin
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  await behind.remove()
})

guard(() => front)

test('a wrong key is refused, the right one lets in, and one leaves again', async ({ page }) => {
  await open(page, front, 'overview')
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  const { violations } = await new AxeBuilder({ page }).analyze()
  expect(violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) => v.id)).toEqual([])
  await page.screenshot({ path: `${shots}/login.png`, fullPage: true })
  await enter(page, 'lnt_nonsense')
  await expect(page.getByRole('alert')).toBeVisible()
  await enter(page, admin)
  await expect(page.getByRole('article', { name: 'upstream far' })).toBeVisible()
  await expect(page.getByText('boss')).toBeVisible()
  await expect(page.getByRole('status').filter({ hasText: 'live' })).toBeVisible()
  await page.reload() // the session is the browser's, not the page's
  await expect(page.getByRole('article', { name: 'upstream far' })).toBeVisible()
  expect(await page.evaluate(() => document.cookie)).toBe('') // which scripts cannot read
  await page.getByRole('button', { name: 'Log out' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await page.reload()
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
})

test('a key that is revoked ends what it had opened', async ({ page }) => {
  const guest = await make('guest', 'read', 'mcp')
  await open(page, front, 'overview')
  await enter(page, guest)
  await expect(page.getByRole('article', { name: 'upstream far' })).toBeVisible()
  await front.run('key', 'revoke', 'guest')
  await expect(page.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await enter(page, guest)
  await expect(page.getByRole('alert')).toBeVisible()
})

test('a key that may not watch is told so', async ({ page }) => {
  const caller = await make('caller', 'mcp')
  await open(page, front, 'settings')
  const refused: string[] = []
  page.on('response', (r) => { if (r.url().includes('/api/v1/events')) refused.push(r.url()) })
  await enter(page, caller)
  await expect(page.getByRole('status').filter({ hasText: 'not live' })).toBeVisible()
  await expect(page.getByText(/^healthy version \S+$/)).toBeVisible()
  expect(refused).toEqual([])
})

test('nothing is changed without the token of the session', async ({ page }) => {
  await open(page, front, 'overview')
  await enter(page, admin)
  await expect(page.getByRole('article', { name: 'upstream far' })).toBeVisible()
  const forged = await page.evaluate(async () => {
    const send = (headers: Record<string, string>) => fetch('/api/v1/keys', { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: '{"name":"forged"}' })
    return [(await send({})).status, (await send({ 'X-CSRF-Token': 'guessed' })).status, (await fetch('/api/v1/logout', { method: 'POST' })).status]
  })
  expect(forged).toEqual([403, 403, 403])
  expect(await front.run('key', 'list')).not.toContain('forged')
})

test('a session begun anew in another tab does not lock this one out', async ({ page }) => {
  await open(page, front, 'settings')
  await enter(page, admin)
  await expect(page.getByRole('heading', { name: 'Keys' })).toBeVisible()
  await page.evaluate(async (key) => { // as another tab would
    await fetch('/api/v1/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) })
  }, admin)
  await page.getByRole('row').filter({ hasText: 'far' }).getByRole('button', { name: 'Refresh' }).click()
  await expect(page.getByText('far was asked again')).toBeVisible()
})

test('an administrator makes and revokes keys', async ({ page }) => {
  await open(page, front, 'settings')
  await enter(page, admin)
  await page.getByLabel('Name of a new key').fill('robot')
  await page.getByRole('button', { name: 'Make a key' }).click()
  const token = await page.locator('.secret').innerText()
  const asked = () => fetch(`${front.address}/api/v1/me`, { headers: { Authorization: `Bearer ${token}` } }).then((a) => a.status)
  expect(await asked()).toBe(200)
  await page.screenshot({ path: `${shots}/keys.png`, fullPage: true })
  await page.getByRole('button', { name: 'Revoke robot' }).click()
  await expect(page.getByRole('row').filter({ hasText: 'robot' })).toContainText('revoked')
  expect(await asked()).toBe(401)
})

test('definitions are held until an administrator has approved them', async ({ page }) => {
  await open(page, front, 'approvals')
  await enter(page, admin)
  const card = page.getByRole('article', { name: 'definition of far.job_stats' })
  await expect(card).toContainText('held')
  await card.getByRole('button', { name: 'Show' }).click()
  await expect(card).toContainText('inputSchema')
  await page.screenshot({ path: `${shots}/held.png`, fullPage: true })
  await card.getByRole('button', { name: 'Approve' }).click()
  await expect(card).toHaveCount(0)
  await expect.poll(async () => JSON.stringify(await front.call('search_tools', { query: 'job_stats', namespace: 'far' }))).toContain('far.job_stats')
  await page.getByRole('button', { name: 'Approve all of far' }).click()
  await expect(page.getByText(/\d+ approved, \d+ left/)).toBeVisible()

  // A definition that becomes another is shown as what changed of it.
  const publish = async (description: string) => {
    const { hash } = await behind.call('script_store', { content: `function describe() return {name = "shifty", description = "${description}"} end function main() return 1 end` })
    await behind.call('script_publish', { script_hash: hash })
  }
  await publish('Says one.')
  const shifty = page.getByRole('article', { name: 'definition of far.shifty' })
  await shifty.getByRole('button', { name: 'Approve' }).click()
  await expect(shifty).toHaveCount(0)
  await publish('Says two.')
  await expect(shifty.locator('.diff')).toContainText('Says one.')
  await expect(shifty.locator('.diff')).toContainText('Says two.')
  await page.screenshot({ path: `${shots}/changed.png`, fullPage: true })
  await shifty.getByRole('button', { name: 'Refuse' }).click()
  await expect(shifty).toHaveCount(0)
})
