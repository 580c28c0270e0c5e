// What every page has: the side bar, the palette, keys, the banner, filters in the address.
import { expect, test, type Locator, type Page } from '@playwright/test'
import { failOnPageErrors, look, open as openAt, shots } from './page'
import { Server, ownAddress } from './server'

const behind = new Server()
let front: Server

test.beforeAll(async () => {
  const address = await behind.start()
  front = new Server(`[upstreams.far]\nurl = "${address}/mcp"\n[upstreams.broken]\ncommand = "sh"\nargs = ["-c", "echo the key is missing >&2; exit 1"]\n`)
  front.address = ownAddress() // the same after a restart
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  await behind.remove()
})

let shown: Server | undefined // another server than front
failOnPageErrors(() => shown ?? front)

const open = (page: Page, path: string) => openAt(page, front, path)

/** Opens the palette, which takes what is typed from then on. */
async function openPalette(page: Page): Promise<Locator> {
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog', { name: 'Search and commands' })
  await expect(palette.getByRole('combobox')).toBeFocused()
  return palette
}

test('the palette leads to pages, servers and tools', async ({ page }) => {
  await open(page, 'overview')
  const palette = await openPalette(page)
  await page.keyboard.type('evaluate lua')
  await expect(palette.getByRole('option', { name: /far\.lua_eval/ })).toBeVisible()
  await page.screenshot({ path: `${shots}/palette.png` })
  await expect(palette.getByRole('option', { name: /far\.lua_eval/ })).toContainText('run tool')
  await palette.getByRole('option', { name: /far\.lua_eval/ }).click()
  await expect(palette.getByLabel(/^code/)).toBeFocused() // it is run in place
  await page.keyboard.type('return 6 * 7')
  await palette.getByRole('button', { name: 'Try it' }).click()
  await expect(palette.getByRole('region', { name: 'Result' })).toContainText('42')
  await page.screenshot({ path: `${shots}/palette-tool.png` })
  await palette.getByRole('link', { name: 'Open its page' }).click()
  await expect(page.getByRole('region', { name: 'Tool', exact: true })).toContainText('far.lua_eval')
  await openPalette(page)
  await page.keyboard.type('serv')
  await expect(palette.getByRole('option').first()).toHaveText(/Servers/)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Servers' })).toBeVisible()
  await expect(palette).toHaveCount(0)
  await openPalette(page)
  await page.keyboard.type('by its command')
  await expect(palette.getByRole('option').first()).toContainText('Connect a server by its command')
  await page.keyboard.press('Enter')
  await expect(palette.getByLabel('Command, or JSON')).toBeFocused()
  await palette.getByRole('button', { name: 'Back' }).click()
  await expect(palette.getByRole('combobox')).toBeFocused()
  await page.keyboard.type(`${behind.address}/mcp`)
  await palette.getByRole('option', { name: /^connect http/ }).click()
  await expect(palette.getByRole('textbox', { name: 'URL' })).toHaveValue(`${behind.address}/mcp`)
  await palette.getByLabel('Name', { exact: true }).fill('near')
  await palette.getByRole('button', { name: 'Connect' }).click()
  await expect(page.getByRole('table', { name: 'Servers' }).getByRole('row').filter({ hasText: 'near' }).getByText('connected')).toBeVisible()
})

test('the palette starts a stored script, and checks its parameters', async ({ page }) => {
  await front.call('script_store', { content: 'function describe() return {name = "palette_greeter", description = "Greets somebody from the palette.", params = {who = {type = "string", required = true}}} end function main(p) return "hello " .. p.who end' })
  await open(page, 'overview')
  const palette = await openPalette(page)
  await page.keyboard.type('palette_greeter')
  await palette.getByRole('option', { name: /run script/ }).click()
  await palette.getByRole('button', { name: 'Start' }).click()
  await expect(palette.getByRole('alert')).toHaveText('This field is required.')
  await palette.getByLabel(/^who/).fill('Ada')
  await palette.getByRole('button', { name: 'Start' }).click()
  await expect(page.getByText('hello Ada')).toBeVisible()
  await expect(palette).toHaveCount(0)
})

test('scripts and artifacts are one entry of the side bar', async ({ page }) => {
  await open(page, 'overview')
  const entry = page.getByRole('navigation').getByRole('link', { name: 'Library' })
  await entry.click()
  await expect(page.getByRole('heading', { level: 1, name: 'Library' })).toBeVisible()
  await page.getByRole('navigation', { name: 'Library' }).getByRole('link', { name: 'Scripts' }).click()
  await expect(page).toHaveURL(/#\/scripts/)
  await expect(page.getByRole('heading', { level: 1, name: 'Library' })).toBeVisible()
  await expect(entry).toHaveAttribute('aria-current', 'page')
  await expect(page.getByRole('navigation').getByRole('link', { name: 'Artifacts' })).toHaveCount(0)
})

test('keys open pages, the search and their list', async ({ page }) => {
  await open(page, 'overview')
  await expect(async () => { // the second key counts for a second only
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await expect(page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Jobs' })).toHaveAttribute('aria-current', 'page', { timeout: 3000 })
  }).toPass()
  await page.keyboard.press('?')
  const help = page.getByRole('complementary', { name: 'Help' })
  await expect(help.getByRole('region', { name: 'Keys' })).toContainText('Playground')
  await expect(help.getByRole('region', { name: 'About this page' })).toContainText('A job is a script')
  await help.getByLabel('Search the documentation').fill('schedule')
  await expect(help.getByRole('list', { name: 'Found' }).getByRole('link').first()).toBeVisible()
  await look(page, 'help')
  await page.keyboard.press('Escape')
  await expect(help).toHaveCount(0)
  await open(page, 'servers')
  await expect(page.getByLabel('Find a server')).toBeVisible()
  await page.keyboard.press('/')
  await expect(page.getByLabel('Find a server')).toBeFocused()
  await page.keyboard.type('gj') // typed, not obeyed
  await expect(page.getByLabel('Find a server')).toHaveValue('gj')
})

test('the documentation is in the page, with its links, and in the search', async ({ page }) => {
  const led = await page.request.get(`${front.address}/docs/approvals`)
  expect(led.url()).toBe(`${front.address}/#/docs/approvals`)
  await open(page, 'docs')
  await page.getByRole('region', { name: 'To begin with' }).getByRole('link', { name: 'Jobs', exact: true }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Jobs', exact: true })).toBeVisible()
  await look(page, 'docs')
  await page.locator('.manual a[href^="#/docs/"]').first().click()
  await expect(page.locator('.manual .markdown')).toBeVisible()
  await expect(page).toHaveURL(/#\/docs\//)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Search and commands' }).fill('cas.store')
  await page.getByRole('option', { name: /^help.*cas\.store/ }).first().click()
  await expect(page).toHaveURL(/#\/docs\/modules\?at=casstore/)
  await expect(page.getByRole('heading', { name: /^cas\.store\(/ })).toBeInViewport()
})

test('an unknown address says so', async ({ page }) => {
  await open(page, 'nowhere/else')
  await expect(page.getByRole('main')).toContainText('There is no page at #/nowhere')
})

test('a server that went away is a banner, and the page returns by itself', async ({ page }) => {
  await open(page, 'servers')
  await expect(page.getByRole('table', { name: 'Servers' })).toContainText('far')
  await front.stop('SIGKILL')
  await expect(page.getByRole('alert')).toContainText('cannot be reached')
  await expect(page.getByText('Failed to fetch')).toHaveCount(0)
  await front.start()
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByRole('table', { name: 'Servers' })).toContainText('far')
})

test('a server has its own page, with what its program wrote', async ({ page }) => {
  await open(page, 'servers')
  await expect(page.getByRole('table', { name: 'Servers' }).getByRole('row').nth(1)).toContainText('broken') // trouble first
  await page.getByRole('link', { name: 'broken' }).click()
  await expect(page.getByRole('region', { name: 'Standard error' })).toContainText('the key is missing')
  await expect(page.getByRole('region', { name: 'State' })).toContainText('luanette.toml:3')
  await page.screenshot({ path: `${shots}/server.png`, fullPage: true })
})

test('the order of a table is part of the address', async ({ page }) => {
  await open(page, 'servers')
  const rows = page.getByRole('table', { name: 'Servers' }).getByRole('row')
  await page.getByRole('button', { name: 'Tools', exact: true }).click()
  await expect(rows.nth(1)).toContainText('far')
  await expect(page).toHaveURL(/sort=-Tools/)
  await page.reload()
  await expect(rows.nth(1)).toContainText('far')
})

test('calls are in the audit log, and it is sound', async ({ page }) => {
  await front.call('call_tool', { name: 'far.job_stats', arguments: {} })
  await open(page, 'audit?tool=far.job_stats')
  await expect(page.getByRole('table', { name: 'Audit log' })).toContainText('far.job_stats')
  await page.getByRole('button', { name: 'Verify' }).click()
  await expect(page.getByText('nothing was changed or deleted')).toBeVisible()
})

test('the overview counts calls, errors and their time', async ({ page }) => {
  await front.call('call_tool', { name: 'far.lua_eval', arguments: { code: 'return 1' } })
  await front.call('call_tool', { name: 'far.lua_eval', arguments: { code: 'error("no")' } }).catch(() => {})
  await open(page, 'overview')
  await expect(page.getByRole('table', { name: 'Tools by calls' }).getByRole('row').filter({ hasText: 'far.lua_eval' }).getByRole('cell').nth(1)).toHaveText(/^[2-9]\d*$/) // at least these
  await expect(page.getByRole('listitem').filter({ hasText: 'Errors' })).toContainText(/[1-9]\d* of/)
  await expect(page.getByRole('img', { name: /^calls and errors per second: calls at most 0\.\d/ })).toBeVisible()
  await expect(page.getByRole('article', { name: 'server broken' })).toContainText('the key is missing')
  await page.getByRole('button', { name: '24 h' }).click()
  await expect(page).toHaveURL(/span=24h/)
  await page.screenshot({ path: `${shots}/operator.png`, fullPage: true })
})

test('an empty server says what to do, and notices when it is done', async ({ page }) => {
  const empty = new Server()
  await empty.start()
  shown = empty
  await page.goto(await empty.signInLink())
  const steps = page.getByRole('region', { name: 'First steps' })
  await expect(steps.getByRole('img', { name: 'step 1' })).toBeVisible()
  await steps.getByRole('tab', { name: 'Cursor' }).click()
  await expect(steps).toContainText('luanette install cursor')
  await expect(steps.getByRole('tabpanel', { name: 'Cursor' })).toContainText(`${empty.address}/mcp`)
  await page.screenshot({ path: `${shots}/first-steps.png`, fullPage: true })
  await empty.call('mcp_connect', { namespace: 'near', url: `${behind.address}/mcp` })
  await expect(steps.getByRole('img', { name: 'done' })).toHaveCount(1)
  await empty.initialize('claude-code', '2.1')
  await expect(steps).toContainText('connected: claude-code 2.1')
  await empty.call('call_tool', { name: 'near.job_stats', arguments: {} })
  await expect(steps).toHaveCount(0)
  await page.goto('about:blank') // no more requests
  shown = undefined
  await empty.remove()
})

test('colours and density are kept in this browser', async ({ page }) => {
  await open(page, 'overview')
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  await page.getByLabel('Colours').selectOption('dark')
  await expect.poll(background).toBe('rgb(15, 16, 22)')
  await page.getByLabel('Density').selectOption('compact')
  await page.reload()
  await expect(page.getByLabel('Density')).toHaveValue('compact')
  expect(await background()).toBe('rgb(15, 16, 22)')
})

test('a phone has the menu behind a button', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 })
  await open(page, 'overview')
  await expect(page.getByRole('navigation')).toBeHidden()
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('navigation').getByRole('link', { name: 'Servers' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Servers' })).toBeVisible()
  await expect(page.getByRole('navigation')).toBeHidden()
})
