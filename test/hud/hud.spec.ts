import { AxeBuilder } from '@axe-core/playwright'
import { expect, test, type Locator, type Page } from '@playwright/test'
import { guard, open as openAt, shots, write } from './guard'
import { House } from './house'
import { standIn, type Model } from './model'

const behind = new House()
let front: House
let model: Model

test.beforeAll(async () => {
  const upstream = await behind.start()
  model = await standIn()
  front = new House(`[upstreams.far]\nurl = "${upstream}/mcp"\n[scripts]\n[approvals]\n"far.script_store" = "writes"\n[chat]\ndebug_events = true\n`,
    { LUANETTE_CHAT_BASE_URL: model.address, ANTHROPIC_API_KEY: 'sk-test' })
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  await behind.remove()
  model?.close()
})

guard(() => front)

async function open(page: Page, path: string): Promise<void> {
  await openAt(page, front, path)
}

test('overview shows an upstream dying and returning, live', async ({ page }) => {
  await open(page, 'overview')
  const card = page.getByRole('article', { name: 'upstream far' })
  await expect(card.getByText('connected', { exact: true })).toBeVisible()
  await behind.stop('SIGKILL')
  await front.call('call_tool', { name: 'far.job_stats', arguments: {} }).catch(() => {})
  await expect(card.getByText('reconnecting', { exact: true })).toBeVisible()
  await behind.start()
  await expect(card.getByText('connected', { exact: true })).toBeVisible()
  await page.screenshot({ path: `${shots}/overview.png`, fullPage: true })
})

test('tools are found as one types, and tried', async ({ page }) => {
  await open(page, 'tools')
  await page.getByLabel('Search by name').fill('evaluate lua')
  await page.getByRole('link', { name: 'far.lua_eval' }).click()
  await page.getByLabel('code', { exact: false }).first().fill('return {answer = 6 * 7}')
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('42')
  await page.screenshot({ path: `${shots}/tools.png`, fullPage: true })
})

test('playground runs, previews and publishes', async ({ page }) => {
  await open(page, 'playground')
  const outcome = page.getByRole('region', { name: 'Outcome' })
  await write(page, 'print("said") return {sum = 1 + 2}')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(outcome).toContainText('sum: 3')
  await expect(outcome).toContainText('said')
  await expect(outcome.getByRole('link', { name: 'The trace alone' })).toBeVisible()
  await write(page, 'fs.write("out.txt", "hello") return 1')
  await page.getByRole('button', { name: 'Preview' }).click()
  await expect(outcome.getByRole('listitem').first()).toContainText('out.txt')
  await page.getByLabel('keep variables').check()
  await write(page, 'counter = 41')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(page.getByRole('cell', { name: 'counter' })).toBeVisible()
  await write(page, 'function describe() return {name = "greet", description = "Greets."} end function main(p) return "hi" end')
  await page.getByRole('button', { name: 'Publish' }).click()
  await expect(page.getByText('greet is a tool now, version 1')).toBeVisible()
  await page.screenshot({ path: `${shots}/playground.png`, fullPage: true })
})

test('jobs are watched and cancelled', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() for i = 1, 1000 do progress(i / 1000, "step " .. i) clock.sleep(100) end end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await open(page, 'jobs')
  const row = page.getByRole('row').filter({ has: page.locator(`a[href="#/jobs/${String(id)}"]`) })
  await expect(row.getByText('running')).toBeVisible()
  await row.getByRole('button', { name: 'Cancel' }).click()
  await expect(row.getByText('cancelled')).toBeVisible()
  await row.getByRole('link').click()
  await expect(page.getByRole('heading', { name: 'Timeline' })).toBeVisible()
  await page.screenshot({ path: `${shots}/jobs.png`, fullPage: true })
})

test('nothing from elsewhere becomes markup', async ({ page }) => {
  const evil = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
  const content = `function describe() return {name = "evil", description = ${JSON.stringify(evil)}} end function main() return ${JSON.stringify(evil)} end`
  const { hash } = await front.call('script_store', { content, tags: [evil.slice(0, 40)] })
  await front.call('script_publish', { script_hash: hash })
  await open(page, 'scripts')
  await expect(page.getByText('onerror=').first()).toBeVisible()
  await page.getByRole('link', { name: 'evil' }).click()
  await expect(page.locator('pre')).toContainText('onerror')
  await page.screenshot({ path: `${shots}/scripts.png`, fullPage: true })
  await open(page, 'tools/evil')
  await expect(page.getByText('onerror=').first()).toBeVisible()
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('onerror')
  expect(await page.locator('img, main script').count()).toBe(0)
  expect(await page.title()).not.toBe('owned')
})

test('a person allows what a script wants to do', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() return mcp.far.script_store{content = "return 1"}.hash end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await open(page, 'approvals')
  const card = page.getByRole('article', { name: 'approval of far.script_store' })
  await expect(card.getByRole('listitem').first()).toContainText('script_store')
  await page.screenshot({ path: `${shots}/approvals.png`, fullPage: true })
  await card.getByRole('button', { name: 'Allow' }).click()
  await expect(card).toHaveCount(0)
  await expect.poll(async () => (await front.call('job_status', { job_id: id })).status).toBe('complete')
})

test('an answer that is remembered holds from then on, until it is forgotten', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() return mcp.far.script_store{content = "return 2"}.hash end' })
  const run = async () => (await front.call('lua_execute', { script_hash: hash })).job_id
  const ended = (id: unknown) => expect.poll(async () => (await front.call('job_status', { job_id: id })).status).toBe('complete')
  const first = await run()
  await open(page, 'approvals')
  const card = page.getByRole('article', { name: 'approval of far.script_store' })
  await card.getByLabel('and remember for').selectOption('tool')
  await card.getByRole('button', { name: 'Allow' }).click()
  await ended(first)
  const rule = page.getByRole('listitem').filter({ hasText: 'far.script_store' })
  await expect(rule).toContainText('allow')
  await ended(await run()) // nobody was asked
  await rule.getByRole('button', { name: 'Forget' }).click()
  await expect(rule).toHaveCount(0)
  await run()
  await card.getByRole('button', { name: 'Deny' }).click()
  await expect(card).toHaveCount(0)
})

test('chat streams, with the tools folded in', async ({ page }) => {
  await open(page, 'chat')
  await page.getByLabel('Message').fill('what is six times seven?')
  await page.getByRole('button', { name: 'Send' }).click()
  const talk = page.getByRole('log')
  await expect(talk).toContainText('It is 42.')
  await expect(talk).toContainText('used lua_eval')
  await page.screenshot({ path: `${shots}/chat.png`, fullPage: true })
})

test('traces are a waterfall', async ({ page }) => {
  await front.call('call_tool', { name: 'far.lua_eval', arguments: { code: 'return 1' } })
  await open(page, 'traces')
  await page.getByRole('link', { name: /tools\/call|POST/ }).first().click()
  await expect(page.locator('.waterfall .bar').first()).toBeVisible()
  await page.screenshot({ path: `${shots}/traces.png`, fullPage: true })
})

test('settings show the configuration and change upstreams', async ({ page }) => {
  await open(page, 'settings')
  await page.getByLabel('Name', { exact: true }).fill('again')
  await page.getByLabel('URL').fill(`${behind.address}/mcp`)
  await page.getByRole('button', { name: 'Connect' }).click()
  const row = page.getByRole('row').filter({ hasText: 'again' })
  await expect(row.getByText('connected')).toBeVisible()
  await row.getByRole('button', { name: 'Remove' }).click()
  await expect(row).toHaveCount(0)
  await expect(page.getByText('recent_traces')).toBeVisible()
  await page.screenshot({ path: `${shots}/settings.png`, fullPage: true })
})

test('everything is reached by keyboard', async ({ page }) => {
  await open(page, 'overview')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  for (const name of ['Overview', 'Tools']) {
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
  await expect(page.getByRole('region', { name: 'Search' }).getByRole('link').first()).toHaveText(/job_stats/) // the list has settled
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
  await expect(page.getByRole('region', { name: 'Outcome' })).toContainText('23')
  await page.keyboard.press('Tab') // leaves the editor
  await expect(page.getByRole('button', { name: 'Run', exact: true })).toBeFocused()
})

const everyPage = ['overview', 'tools', 'tools/evil', 'playground', 'jobs', 'scripts', 'artifacts', 'approvals', 'chat', 'traces', 'settings']

for (const path of everyPage) {
  test(`${path} has no serious accessibility findings, light or dark`, async ({ page }) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await open(page, path)
      const { violations } = await new AxeBuilder({ page }).analyze()
      const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
      expect(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`), colorScheme).toEqual([])
    }
  })
}

test('a phone shows every page without scrolling sideways', async ({ page }) => {
  await page.setViewportSize({ width: 375, height: 700 })
  for (const path of everyPage) {
    await open(page, path)
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(376)
  }
})

test('a thousand events a second leave the page responsive', async ({ page }) => {
  await open(page, 'overview')
  const flood = front.call('lua_eval', { code: 'for i = 1, 3000 do log.info("event " .. i) end return 1' })
  await page.getByRole('navigation').getByRole('link', { name: 'Tools' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Tools' })).toBeVisible()
  await flood
  await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeVisible()
  await expect(page.getByRole('cell', { name: 'event 3000' })).toBeVisible() // all of it has arrived
})
