// A thousand events a second: calls, jobs and log lines, while the page is in use.
import { expect, test, type Page } from '@playwright/test'
import { failOnPageErrors, open } from './page'
import { Server } from './server'
import { problems, readMeasurement, startMeasuring, unbatched, type Measurement } from './measure'
import { upstream, type Upstream } from './upstream'

// These tests measure times; a busy machine may need another attempt.
test.describe.configure({ retries: 2 })

let front: Server
let gallery: Upstream

test.beforeAll(async () => {
  gallery = await upstream()
  front = new Server(`[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n[scripts]\ncalls = 100000\ntimeout = "10m"\n[hud]\nrecent_events = 100\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
})

test.afterAll(async () => {
  await front?.remove()
  gallery?.close()
})

failOnPageErrors(() => front)

/** Lua that runs a statement `each` times every 20 ms for some seconds, and catches up when it is late. */
function paced(seconds: number, each: number, statement: string): string {
  return `local began = clock.now() for tick = 1, ${seconds * 50} do for i = 1, ${each} do ${statement} end
    local wait = began + tick * 20 - clock.now() if wait > 0 then clock.sleep(wait) end end return true`
}

/** Causes 500 log lines, 200 calls (400 events) and 100 progress events per second. */
async function generateLoad(seconds: number): Promise<void> {
  const { hash } = await front.call('script_store', { content: `function main() ${paced(seconds, 2, 'progress(tick / 1000, "tick " .. tick)')} end` })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await Promise.all([
    front.call('lua_eval', { code: paced(seconds, 10, 'log.info("line " .. tick)') }),
    front.call('lua_eval', { code: paced(seconds, 2, 'mcp.gallery.words{}') }),
    front.call('lua_eval', { code: paced(seconds, 2, 'mcp.gallery.words{}') }),
    front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 60_000 }),
  ])
}

/** Uses the page: searches tools key by key and changes pages. */
async function use(page: Page): Promise<void> {
  const go = async (name: string) => {
    await page.getByRole('navigation').getByRole('link', { name }).click()
    await expect(page.getByRole('heading', { level: 1, name })).toBeVisible()
  }
  for (const query of ['picture', 'sound of it']) {
    await go('Tools')
    await page.getByLabel('Search by name').focus()
    await page.keyboard.type(query, { delay: 30 })
    await expect(page.getByLabel('Search by name')).toHaveValue(query)
    await go('Activity')
    await go('Library')
    await go('Overview')
  }
}

/** Measures the page under load. */
async function measureLoad(page: Page, seconds: number): Promise<Measurement> {
  await startMeasuring(page)
  let done = false
  const load = generateLoad(seconds).finally(() => (done = true))
  while (!done) await use(page)
  await load
  return readMeasurement(page)
}

test('a thousand events a second leave the page responsive', async ({ page }) => {
  test.setTimeout(120_000)
  await open(page, front, 'overview')
  await startMeasuring(page)
  await use(page)
  const idle = await readMeasurement(page)
  const loaded = await measureLoad(page, 6)
  test.info().annotations.push({ type: 'idle', description: JSON.stringify(idle) }, { type: 'loaded', description: JSON.stringify(loaded) })
  console.log(`${loaded.events} events, ${loaded.peak} in the busiest second, drawn ${Math.round(loaded.redraws / loaded.seconds)}/s, busy ${Math.round(loaded.busy * 100)} %, frames ${loaded.frame} ms (idle ${idle.frame}), keys ${loaded.input} ms (idle ${idle.input})`)
  expect(loaded.events).toBeGreaterThan(5500) // all events arrived
  await expect(page.getByText(/events missed/)).toHaveCount(0)
  expect(problems(loaded, idle)).toEqual([])
  await expect(page.getByRole('table', { name: 'Tools by calls' })).toContainText('gallery.words') // and is shown
})

test('without batching the page fails the same check', async ({ page }) => {
  test.setTimeout(120_000)
  await unbatched(page)
  await open(page, front, 'overview')
  await startMeasuring(page)
  await generateLoad(1)
  const loaded = await readMeasurement(page) // waits until the page is responsive
  console.log(`unbatched: drawn ${loaded.redraws} times for ${loaded.events}, busy ${Math.round(loaded.busy * 100)} %, frames ${loaded.frame} ms`)
  expect(problems(loaded).join()).toMatch(/drawn|frames/)
})
