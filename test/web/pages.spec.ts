import { expect, test, type Locator, type Page } from '@playwright/test'
import { failOnPageErrors, open as openAt, serverRow, shots, write } from './page'
import { Server, ownAddress } from './server'
import { fakeModel, type Model } from './model'
import { upstream } from './upstream'

const behind = new Server()
let front: Server
let model: Model

test.beforeAll(async () => {
  behind.address = ownAddress()
  const address = await behind.start()
  model = await fakeModel()
  front = new Server(`[upstreams.far]\nurl = "${address}/mcp"\n[scripts]\ntimeout = "10m"\n[approvals]\n"far.script_store" = "writes"\n[chat]\ndebug_events = true\n`,
    { LUANETTE_CHAT_BASE_URL: model.address, ANTHROPIC_API_KEY: 'sk-test' })
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  await behind.remove()
  model?.close()
})

failOnPageErrors(() => front)

async function open(page: Page, path: string): Promise<void> {
  await openAt(page, front, path)
}

test('overview shows live when an upstream disconnects and reconnects', async ({ page }) => {
  await open(page, 'overview')
  const card = serverRow(page, 'far')
  await expect(card.getByText('connected', { exact: true })).toBeVisible()
  await behind.stop('SIGKILL')
  await front.call('call_tool', { name: 'far.job_stats', arguments: {} }).catch(() => {})
  await expect(card.getByText('reconnecting', { exact: true })).toBeVisible()
  await behind.start()
  await expect(card.getByText('connected', { exact: true })).toBeVisible()
  await page.screenshot({ path: `${shots}/overview.png`, fullPage: true })
})

test('tools are found while typing, and tried', async ({ page }) => {
  await open(page, 'tools')
  await page.getByLabel('Search by name').fill('evaluate lua')
  await page.getByRole('link', { name: 'far.lua_eval' }).click()
  await page.getByLabel('code', { exact: false }).first().fill('return {answer = 6 * 7, most = math.maxinteger}')
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('42')
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('9223372036854775807') // exact
  await page.screenshot({ path: `${shots}/tools.png`, fullPage: true })
})

test('playground runs, previews and publishes', async ({ page }) => {
  await open(page, 'playground')
  const outcome = page.getByRole('region', { name: 'Result of the run' })
  await write(page, 'print("said") return {sum = 1 + 2}')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(outcome).toContainText('sum: 3')
  await expect(outcome).toContainText('said')
  await expect(outcome.getByRole('link', { name: 'Open trace' })).toBeVisible()
  await write(page, 'fs.write("out.txt", "hello") return 1')
  await page.getByRole('button', { name: 'Preview' }).click()
  await expect(page.getByRole('region', { name: 'Plan' })).toContainText('out.txt')
  await page.getByLabel('keep variables').check()
  await write(page, 'counter = 41')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(page.getByRole('cell', { name: 'counter' })).toBeVisible()
  await write(page, 'function describe() return {name = "greet", description = "Greets."} end function main(p) return "hi" end')
  await page.getByRole('button', { name: 'Publish' }).click()
  await expect(page.getByText('greet is a tool now, version 1')).toBeVisible()
  await page.screenshot({ path: `${shots}/playground.png`, fullPage: true })
})

test('fast typing in the editor loses no key', async ({ page }) => {
  await open(page, 'playground')
  const numbers = Array.from({ length: 60 }, (_, i) => i)
  await write(page, '')
  await page.keyboard.type(`return {total = ${numbers.join(' + ')}, last = "${numbers.length}"}`) // no pause between keys
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  const outcome = page.getByRole('region', { name: 'Result of the run' })
  await expect(outcome).toContainText('total: 1770')
  await expect(outcome).toContainText('last: "60"')
})

test('jobs are shown live and cancelled', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() for i = 1, 1000 do progress(i / 1000, "step " .. i) clock.sleep(100) end end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await open(page, 'jobs')
  const row = page.getByRole('row').filter({ has: page.locator(`a[href="#/jobs/${String(id)}"]`) })
  await expect(row.getByText('running')).toBeVisible()
  await row.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click()
  await expect(row.getByText('cancelled')).toBeVisible()
  await row.getByRole('link').click()
  await expect(page.getByRole('heading', { name: 'Steps' })).toBeVisible()
  await page.screenshot({ path: `${shots}/jobs.png`, fullPage: true })
})

test('text from servers and scripts is never HTML', async ({ page }) => {
  const evil = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
  const content = `function describe() return {name = "evil", description = ${JSON.stringify(evil)}} end function main() return ${JSON.stringify(evil)} end`
  const { hash } = await front.call('script_store', { content, tags: [evil.slice(0, 40)] })
  await front.call('script_publish', { script_hash: hash })
  await open(page, 'scripts')
  await expect(page.getByText('onerror=').first()).toBeVisible()
  await page.getByRole('link', { name: 'evil' }).first().click()
  await expect(page.locator('pre')).toContainText('onerror')
  await page.screenshot({ path: `${shots}/scripts.png`, fullPage: true })
  await open(page, 'tools/evil')
  await expect(page.getByText('onerror=').first()).toBeVisible()
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('onerror')
  expect(await page.locator('img, main script').count()).toBe(0)
  expect(await page.title()).not.toBe('owned')
})

test('a user approves an effect of a script', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() return mcp.far.script_store{content = "return 1"}.hash end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await open(page, 'approvals')
  const card = page.getByRole('article', { name: 'approval of far.script_store' })
  await expect(card.getByRole('listitem').first()).toContainText('script_store')
  await expect(card.getByRole('listitem').first()).toContainText('return 1') // with its arguments
  await page.screenshot({ path: `${shots}/approvals.png`, fullPage: true })
  await card.getByRole('button', { name: 'Allow' }).click()
  await expect(card).toHaveCount(0)
  await expect.poll(async () => (await front.call('job_status', { job_id: id })).status).toBe('complete')
})

test('a remembered decision applies until it is forgotten', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() return mcp.far.script_store{content = "return 2"}.hash end' })
  const run = async () => (await front.call('lua_execute', { script_hash: hash })).job_id
  const ended = (id: unknown) => expect.poll(async () => (await front.call('job_status', { job_id: id })).status).toBe('complete')
  const first = await run()
  await open(page, 'approvals')
  const card = page.getByRole('article', { name: 'approval of far.script_store' })
  await card.getByLabel('and remember for').selectOption('tool')
  await card.getByRole('button', { name: 'Allow' }).click()
  await ended(first)
  const rule = page.getByRole('listitem').filter({ hasText: 'far.script_store' }).filter({ has: page.getByRole('button', { name: 'Forget' }) })
  await expect(rule).toContainText('allow')
  await ended(await run()) // without a new approval
  await rule.getByRole('button', { name: 'Forget' }).click()
  await expect(rule).toHaveCount(0)
  await run()
  await card.getByRole('button', { name: 'Deny' }).click()
  await expect(card).toHaveCount(0)
})

test('a trace is a waterfall', async ({ page }) => {
  await front.call('call_tool', { name: 'far.lua_eval', arguments: { code: 'return 1' } })
  await open(page, 'traces')
  await page.getByRole('link', { name: /tools\/call|POST/ }).first().click()
  await expect(page.locator('.waterfall .bar').first()).toBeVisible()
  await page.screenshot({ path: `${shots}/traces.png`, fullPage: true })
})

test('settings show the configuration', async ({ page }) => {
  await open(page, 'settings')
  const table = page.getByRole('table', { name: 'Configuration' })
  await expect(table.getByRole('row').filter({ hasText: 'debug_events' })).toContainText('luanette.toml, line')
  await expect(table.getByRole('cell', { name: 'recent_traces', exact: true })).toHaveCount(0)
  await page.getByLabel('only changed settings').uncheck()
  await expect(table.getByRole('cell', { name: 'recent_traces', exact: true })).toBeVisible()
  await page.getByLabel('Find', { exact: true }).fill('recent_tr')
  await expect(table.getByRole('row').filter({ hasText: 'recent_events' })).toHaveCount(0)
  await expect(table.getByRole('row').filter({ hasText: 'recent_traces' })).toContainText('default')
})

test('upstreams are added, changed and removed', async ({ page }) => {
  const other = await upstream()
  await open(page, 'servers')
  await page.getByRole('button', { name: 'Connect a server' }).click()
  const form = page.getByRole('dialog', { name: 'Connect a server' })
  await form.getByLabel('Name', { exact: true }).fill('again')
  await form.getByRole('textbox', { name: 'URL' }).fill(`${behind.address}/mcp`)
  await form.getByRole('button', { name: 'Add a header' }).click()
  await form.getByLabel('name of header 1').fill('X-Word')
  await form.getByLabel('value of header 1').fill('hush-hush')
  await page.screenshot({ path: `${shots}/upstream-form.png` })
  await form.getByRole('button', { name: 'Connect' }).click()
  const row = page.getByRole('table', { name: 'Servers' }).getByRole('row').filter({ hasText: 'again' })
  await expect(row.getByText('connected')).toBeVisible()
  await expect(row).toContainText('added')

  await row.getByRole('button', { name: 'Edit' }).click() // another address: another server
  const change = page.getByRole('dialog', { name: 'Edit again' })
  await expect(change.getByLabel('name of header 1')).toHaveValue('X-Word')
  await expect(change.getByLabel('value of header 1')).toHaveValue('') // the server does not return it
  await change.getByLabel('URL').fill(`${other.address}/mcp`)
  await change.getByRole('button', { name: 'remove header X-Word' }).click()
  await change.getByRole('button', { name: 'Save' }).click()
  await expect(row).toContainText(other.address)
  await expect(row.getByRole('cell', { name: '6', exact: true })).toBeVisible() // tools
  await open(page, 'tools/again.words')
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('plain')

  await open(page, 'servers')
  await page.screenshot({ path: `${shots}/servers.png`, fullPage: true })
  await row.getByRole('button', { name: 'Remove' }).click()
  await expect(row).toHaveCount(0)
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(row.getByText('connected')).toBeVisible()
  await row.getByRole('button', { name: 'Disable' }).click()
  await expect(row.getByText('disabled', { exact: true })).toBeVisible()
  await row.getByRole('button', { name: 'Remove' }).click()
  await expect(row).toHaveCount(0)
  other.close()
})

test('a duplicate name and an invalid address are refused with a message', async ({ page }) => {
  await open(page, 'servers')
  await page.getByRole('button', { name: 'Connect a server' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Name', { exact: true }).fill('far')
  await form.getByRole('textbox', { name: 'URL' }).fill('http://127.0.0.1:9/mcp')
  await form.getByRole('button', { name: 'Connect' }).click()
  await expect(form.getByRole('alert')).toContainText('luanette.toml')
  await form.getByLabel('Name', { exact: true }).fill('nearby')
  await form.getByRole('textbox', { name: 'URL' }).fill('ftp://nowhere')
  await form.getByRole('button', { name: 'Connect' }).click()
  await expect(form.getByRole('alert')).toContainText('ftp://nowhere')
  await page.keyboard.press('Escape')
  await expect(form).toHaveCount(0)
})

test('a server of the configuration is disabled and enabled', async ({ page }) => {
  await open(page, 'servers')
  const row = page.getByRole('table', { name: 'Servers' }).getByRole('row').filter({ hasText: 'far' })
  await expect(row).toContainText('luanette.toml:1')
  await expect(row.getByRole('button', { name: 'Edit' })).toHaveCount(0)
  await row.getByRole('button', { name: 'Disable' }).click()
  await expect(row.getByText('disabled', { exact: true })).toBeVisible()
  await page.screenshot({ path: `${shots}/servers-disabled.png`, fullPage: true })
  await openAt(page, front, 'overview')
  await expect(serverRow(page, 'far')).toContainText('disabled')
  await open(page, 'servers')
  await row.getByRole('button', { name: 'Enable' }).click()
  await expect(row.getByText('connected')).toBeVisible()
})

test('everything can be reached by keyboard', async ({ page }) => {
  await open(page, 'overview')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to content' })).toBeFocused()
  await page.keyboard.press('Tab') // the mark
  await page.keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Search or run' })).toBeFocused()
  for (const name of ['Overview', 'Activity', 'Approvals', 'Chat', 'Servers', 'Tools']) {
    await page.keyboard.press('Tab')
    await expect(page.getByRole('navigation').getByRole('link', { name })).toBeFocused()
  }
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Tools' })).toBeVisible()
  const tabTo = async (where: Locator) => {
    for (let i = 0; i < 250 && !(await where.evaluate((e) => e.matches(':focus'))); i++) await page.keyboard.press('Tab')
    await expect(where).toBeFocused()
  }
  await tabTo(page.getByLabel('Search by name'))
  await page.keyboard.type('job_stats')
  const found = page.getByRole('link', { name: 'far.job_stats' })
  await expect(page.getByRole('region', { name: 'Search' }).getByRole('link').first()).toHaveText(/job_stats/) // the list is up to date
  await tabTo(found)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Tool', exact: true })).toContainText('far.job_stats')
  await tabTo(page.getByRole('button', { name: 'Try it' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('total')
  await page.goto(`${front.address}/#/playground`)
  await tabTo(page.getByRole('textbox', { name: 'script' }))
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText('return 20 + 3')
  await page.keyboard.press('Control+Enter')
  await expect(page.getByRole('region', { name: 'Result of the run' })).toContainText('23')
  await page.keyboard.press('Tab') // leaves the editor
  await expect(page.getByRole('button', { name: 'Run', exact: true })).toBeFocused()
})
