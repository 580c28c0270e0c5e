// A thousand events a second: calls, jobs and log lines, while somebody uses the page.
import { expect, test, type Page } from '@playwright/test'
import { guard, open } from './guard'
import { House } from './house'
import { judge, measured, unbatched, watch, type Measured } from './measure'
import { upstream, type Upstream } from './upstream'

// They judge times: where the machine did something else meanwhile, they are taken again.
test.describe.configure({ retries: 2 })

let front: House
let gallery: Upstream

test.beforeAll(async () => {
  gallery = await upstream()
  front = new House(`[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n[scripts]\ncalls = 100000\ntimeout = "10m"\n[hud]\nrecent_events = 100\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
})

test.afterAll(async () => {
  await front?.remove()
  gallery?.close()
})

guard(() => front)

/** Does something `each` times every 20 ms for so many seconds; who is late catches up. */
function paced(seconds: number, each: number, what: string): string {
  return `local began = clock.now() for tick = 1, ${seconds * 50} do for i = 1, ${each} do ${what} end
    local wait = began + tick * 20 - clock.now() if wait > 0 then clock.sleep(wait) end end return true`
}

/** 500 log lines, 200 calls (which are 400 events) and 100 steps of a job, each second. */
async function storm(seconds: number): Promise<void> {
  const { hash } = await front.call('script_store', { content: `function main() ${paced(seconds, 2, 'progress(tick / 1000, "tick " .. tick)')} end` })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await Promise.all([
    front.call('lua_eval', { code: paced(seconds, 10, 'log.info("line " .. tick)') }),
    front.call('lua_eval', { code: paced(seconds, 2, 'mcp.gallery.words{}') }),
    front.call('lua_eval', { code: paced(seconds, 2, 'mcp.gallery.words{}') }),
    front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 60_000 }),
  ])
}

/** What a person does meanwhile: looks for tools, key by key, and goes from page to page. */
async function use(page: Page): Promise<void> {
  const go = async (name: string) => {
    await page.getByRole('navigation').getByRole('link', { name }).click()
    await expect(page.getByRole('heading', { level: 1, name })).toBeVisible()
  }
  for (const words of ['picture', 'sound of it']) {
    await go('Tools')
    await page.getByLabel('Search by name').focus()
    await page.keyboard.type(words, { delay: 30 })
    await expect(page.getByLabel('Search by name')).toHaveValue(words)
    await go('Jobs')
    await go('Traces')
    await go('Overview')
  }
}

/** How the page does while `during` lasts. */
async function stormy(page: Page, seconds: number): Promise<Measured> {
  await watch(page)
  let over = false
  const weather = storm(seconds).finally(() => (over = true))
  while (!over) await use(page)
  await weather
  return measured(page)
}

test('a thousand events a second leave the page responsive', async ({ page }) => {
  test.setTimeout(120_000)
  await open(page, front, 'overview')
  await watch(page)
  await use(page)
  const quiet = await measured(page)
  const loud = await stormy(page, 6)
  test.info().annotations.push({ type: 'quiet', description: JSON.stringify(quiet) }, { type: 'loud', description: JSON.stringify(loud) })
  console.log(`${loud.events} events, ${loud.peak} in the fullest second, drawn ${Math.round(loud.rounds / loud.seconds)}/s, busy ${Math.round(loud.busy * 100)} %, frames ${loud.frame} ms (quiet ${quiet.frame}), keys ${loud.input} ms (quiet ${quiet.input})`)
  expect(loud.events).toBeGreaterThan(5500) // all of it has arrived
  await expect(page.getByText(/events missed/)).toHaveCount(0)
  expect(judge(loud, quiet)).toEqual([])
  await expect(page.getByRole('article', { name: 'upstream gallery' })).toContainText('words') // and it is shown
})

test('the same page would not do if it were drawn for every event', async ({ page }) => {
  test.setTimeout(120_000)
  await unbatched(page)
  await open(page, front, 'overview')
  await watch(page)
  await storm(1)
  const loud = await measured(page) // which waits until the page has time for it
  console.log(`for every event: drawn ${loud.rounds} times for ${loud.events}, busy ${Math.round(loud.busy * 100)} %, frames ${loud.frame} ms`)
  expect(judge(loud).join()).toMatch(/drawn|pictures/)
})
