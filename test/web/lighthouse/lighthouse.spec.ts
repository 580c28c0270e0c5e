// Lighthouse grades the overview of a busy server. Grades depend on the machine, so this is
// not part of the other tests: the best of three counts.
import { chromium, expect, test } from '@playwright/test'
import { mkdirSync, writeFileSync } from 'node:fs'
import lighthouse, { desktopConfig } from 'lighthouse'
import { Server } from '../server'
import { upstream } from '../upstream'

const servers = 30, events = 5000, goal = 95
const reports = '../../.cache/web/lighthouse'

/** A server with many upstreams and events: calls of all of them, and log lines. */
async function busy(address: string): Promise<Server> {
  const names = Array.from({ length: servers }, (_, i) => `server${i + 1}`)
  const front = new Server(`${names.map((n) => `[upstreams.${n}]\nurl = "${address}/mcp"\n`).join('')}[hud]\nrecent_events = ${2 * events}\n[scripts]\ncalls = 100000\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {})).match(/"state":"connected"/g)?.length, { timeout: 60_000 }).toBe(servers)
  for (const name of names) await front.call('lua_eval', { code: `for i = 1, 50 do mcp.${name}.words{} end for i = 1, 100 do log.info("line " .. i) end` })
  return front
}

/** What an audit found, row by row. */
interface Row {
  score?: number
  duration?: number
  startTime?: number
  url?: string
  node?: { selector?: string; boundingRect?: object }
}

function rows(audit?: { details?: unknown }): Row[] {
  return (audit?.details as { items?: Row[] } | undefined)?.items ?? []
}

/** Grades a page with the browser that listens at a port. */
async function grade(url: string, port: number, profile: 'phone' | 'desktop'): Promise<Record<string, number>> {
  const found = await lighthouse(url, { port, onlyCategories: ['performance', 'accessibility'], output: 'html' }, profile === 'desktop' ? desktopConfig : undefined)
  if (!found) throw new Error('lighthouse has no result')
  const metrics = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'cumulative-layout-shift', 'speed-index']
  console.log(`${profile}: ${metrics.map((m) => `${m} ${found.lhr.audits[m]?.displayValue ?? found.lhr.audits[m]?.errorMessage}`).join(', ')}; machine ${found.lhr.environment.benchmarkIndex}`)
  for (const shift of rows(found.lhr.audits['layout-shifts'])) console.log(`  moved by ${shift.score}: ${shift.node?.selector} ${shift.node?.boundingRect ? JSON.stringify(shift.node.boundingRect) : ''}`)
  for (const task of rows(found.lhr.audits['long-tasks'])) console.log(`  busy for ${Math.round(task.duration ?? 0)} ms from ${Math.round(task.startTime ?? 0)} ms: ${task.url}`)
  mkdirSync(reports, { recursive: true })
  writeFileSync(`${reports}/${profile}.html`, String(found.report))
  writeFileSync(`${reports}/${profile}.json`, JSON.stringify(found.lhr))
  return Object.fromEntries(Object.entries(found.lhr.categories).map(([name, c]) => [name, Math.round((c.score ?? 0) * 100)]))
}

for (const profile of ['desktop', 'phone'] as const) {
  test(`the overview is graded at least ${goal}, ${profile}`, async () => {
    const gallery = await upstream()
    const front = await busy(gallery.address)
    const port = 9222 + (process.pid % 700)
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', `--remote-debugging-port=${port}`] })
    const best: Record<string, number> = {}
    for (let i = 0; i < 3 && !(best.performance >= goal && best.accessibility >= goal); i++) {
      for (const [name, score] of Object.entries(await grade(`${front.address}/`, port, profile))) best[name] = Math.max(best[name] ?? 0, score)
    }
    console.log(`${profile}: ${JSON.stringify(best)}`)
    await browser.close()
    await front.remove()
    gallery.close()
    expect(best.accessibility).toBeGreaterThanOrEqual(goal)
    expect(best.performance).toBeGreaterThanOrEqual(goal)
  })
}
