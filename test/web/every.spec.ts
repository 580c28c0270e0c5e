// Every page with data: no accessibility finding, no sideways scrolling and no console
// error, in both themes and on a phone, and every button does what it says. The pictures
// of docs/hud.md are made here.
import { expect, test, type Locator, type Page, type Request } from '@playwright/test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { failOnPageErrors, look, open } from './page'
import { openStage, type Stage } from './stage'

let stage: Stage

test.beforeAll(async () => {
  stage = await openStage()
})

test.afterAll(() => stage?.close())

failOnPageErrors(() => stage.front)

/** The address of every page; those of things are known when the stage is set. */
const pages: Record<string, (s: Stage) => string> = {
  overview: () => 'overview',
  activity: () => 'activity',
  tools: () => 'tools',
  sets: () => 'sets',
  prompts: () => 'prompts',
  approvals: () => 'approvals',
  playground: (s) => `playground/${s.script}`,
  jobs: () => 'jobs',
  job: (s) => `jobs/${s.job}`,
  'two-jobs': (s) => `jobs/${s.other}/${s.job}`,
  timeline: () => 'timeline/suite',
  'empty-timeline': () => 'timeline',
  chat: () => 'chat',
  conversation: () => 'chat/kept',
  usage: () => 'usage',
  organisation: () => 'organisation',
  traces: () => 'traces',
  trace: (s) => `traces/${s.traces[0]}`,
  'two-traces': (s) => `traces/${s.traces[0]}/${s.traces[1]}`,
  audit: () => 'audit',
  people: () => 'people',
  you: () => 'you',
  settings: () => 'settings',
  docs: () => 'docs',
  'docs-page': () => 'docs/jobs',
  'people-people': () => 'people/people',
  unknown: () => 'nowhere',
  library: () => 'library',
  artifact: (s) => `artifacts/${s.artifact}`,
  scripts: () => 'scripts', // whose content their buttons delete
  script: (s) => `scripts/${s.script}`,
  tool: () => 'tools/everything.get-sum', // disabled by its buttons
  servers: () => 'servers',
  server: () => 'servers/everything', // removed by its buttons
}

/** The pages whose pictures are in docs/hud.md. */
const pictured = ['overview', 'playground', 'job', 'two-traces']
const pictures = '../../.cache/web/pictures'

/** Waits until a page has what it loads: nothing is on its way and no placeholder is left. */
async function settled(page: Page): Promise<void> {
  await expect(page.locator('.skeleton')).toHaveCount(0)
  await expect(page.getByText(/^(Loading|Connecting)/)).toHaveCount(0)
}

async function picture(page: Page, name: string): Promise<void> {
  const tab = await page.context().newCDPSession(page)
  const { data } = await tab.send('Page.captureScreenshot', { format: 'webp', quality: 70 })
  mkdirSync(pictures, { recursive: true })
  writeFileSync(`${pictures}/${name}.webp`, Buffer.from(data, 'base64'))
}

for (const [name, path] of Object.entries(pages)) {
  test(`${name} has no accessibility finding, light, dark and on a phone`, async ({ page }) => {
    await page.setViewportSize({ width: 1440, height: 900 })
    await open(page, stage.front, path(stage))
    await settled(page)
    await look(page, `every/${name}`, async (colorScheme) => {
      if (pictured.includes(name)) await picture(page, `${name}-${colorScheme}`)
    })
  })
}

/** The buttons that can be pressed now: those of an open dialog, or of the page's content. */
async function pressable(page: Page): Promise<Locator> {
  const dialogs = page.locator('dialog[open]')
  return (await dialogs.count()) > 0 ? dialogs.last().locator('button:visible:enabled') : page.locator('main button:visible:enabled:not(.command)')
}

/** The names of those buttons as people know them, without arrows of order and counts; in a dialog after its name. */
async function names(page: Page): Promise<string[]> {
  return (await pressable(page)).evaluateAll((all) => all.map((b) => {
    const text = (b.getAttribute('aria-label') ?? b.textContent ?? '').replace(/ [↑↓]| \d+$/g, '').trim()
    return b.closest('dialog') ? `dialog: ${text}` : text
  }))
}

/** Collects the notices of errors and how many requests are on their way; notices disappear by themselves. */
async function watch(page: Page): Promise<{ errors: () => Promise<string[]>; answered: () => Promise<void> }> {
  await page.addInitScript(() => {
    const seen: string[] = ((window as Window & { errors?: string[] }).errors = [])
    new MutationObserver(() => {
      for (const n of document.querySelectorAll('.notices .bad')) {
        const text = n.textContent ?? ''
        // A script that somebody denies fails, one that runs again asks again, and one that was published a moment ago cannot be deleted.
        const right = ['was not approved', 'approval requested', 'unpublish the tool first'].some((t) => text.includes(t))
        if (!seen.includes(text) && !right) seen.push(text)
      }
    }).observe(document, { subtree: true, childList: true })
  })
  const open = new Set<Request>()
  page.on('request', (r) => !r.url().includes('/api/v1/events') && open.add(r))
  page.on('requestfinished', (r) => open.delete(r))
  page.on('requestfailed', (r) => open.delete(r))
  return {
    errors: () => page.evaluate(() => (window as Window & { errors?: string[] }).errors ?? []),
    answered: () => expect.poll(() => [...open].map((r) => r.url())).toEqual([]),
  }
}

/** Presses every button of a page, and those that appear by that, once for each name. */
async function pressAll(page: Page, errors: () => Promise<string[]>, answered: () => Promise<void>): Promise<string[]> {
  const pressed = new Set<string>()
  const address = page.url()
  for (let known: string[] = [];;) {
    const now = await names(page)
    const appeared = now.some((n) => !known.includes(n) && !pressed.has(n))
    if (!appeared && page.url() !== address) { // elsewhere, or filtered: back to where everything is
      await page.goto(address)
      await settled(page)
      known = await names(page)
      if (known.every((n) => pressed.has(n))) return [...pressed]
      continue
    }
    const at = now.findIndex((n) => !pressed.has(n))
    if (at < 0) {
      if ((await page.locator('dialog[open]').count()) === 0) return [...pressed]
      await page.keyboard.press('Escape')
      continue
    }
    known = now
    pressed.add(now[at])
    await (await pressable(page)).nth(at).click({ timeout: 5000 }).catch(() => {}) // gone: the page changed by itself
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100)))) // it begins
    await answered()
    expect(await errors(), `after ${now[at]}`).toEqual([])
  }
}

for (const [name, path] of Object.entries(pages)) {
  test(`every button of ${name} works`, async ({ page, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const { errors, answered } = await watch(page)
    await open(page, stage.front, path(stage))
    await settled(page)
    const pressed = await pressAll(page, errors, answered)
    expect(await errors(), 'at the end').toEqual([])
    test.info().annotations.push({ type: 'pressed', description: pressed.join(', ') })
    console.log(`${name}: ${pressed.join(' | ')}`)
  })
}
