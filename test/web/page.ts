// Helpers for tests of the page.
import { expect, test, type Locator, type Page } from '@playwright/test'
import axe from 'axe-core'
import type { Server } from './server'

export const shots = '../../.cache/web/screenshots'

/** Fails a test when the page violates its content security policy, logs an error, or sends a request to another server. */
export function failOnPageErrors(front: () => Server): void {
  test.beforeEach(async ({ page }) => {
    const link = await front().signInLink()
    if (link) await page.request.get(link)
    page.on('pageerror', (e) => { throw e })
    page.on('console', (m) => {
      if (m.type() === 'error' && !m.text().includes('ERR_CONNECTION') && !m.text().includes('net::') && !/status of 40/.test(m.text())) throw new Error(`console: ${m.text()}`)
    })
    page.on('request', (r) => {
      if (!r.url().startsWith(front().address) && !/^(data|blob):/.test(r.url())) throw new Error(`a request to ${r.url()}`)
    })
  })
}

export async function open(page: Page, front: Server, path: string): Promise<void> {
  await page.goto(`${front.address}/#/${path}`)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
}

/** Replaces the text of the code editor. */
export async function write(page: Page, code: string): Promise<void> {
  await page.getByRole('textbox', { name: 'script' }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toBeFocused()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  if (code) await page.keyboard.insertText(code)
}

/** The row of a server in the table of the overview and of the page of servers. */
export function serverRow(page: Page, name: string): Locator {
  return page.getByRole('table', { name: 'Servers' }).getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
}

/** What axe finds on a page; it is loaded into it once. */
export async function findings(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  return page.evaluate(async () => {
    const { violations } = await (window as unknown as { axe: typeof axe }).axe.run(document, { resultTypes: ['violations'] })
    return violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(' ')} ${n.failureSummary ?? ''}`).join(', ')}`)
  })
}

/** Checks what is shown in both themes and on a phone, and keeps pictures of it. `also` is called in each theme. */
export async function look(page: Page, name: string, also: (colorScheme: string) => Promise<void> = async () => {}): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(drawn))) // media queries report their changes with the next frame
    expect(await findings(page), `${name}, ${colorScheme}`).toEqual([])
    await page.screenshot({ path: `${shots}/${name}-${colorScheme}.png` })
    await also(colorScheme)
  }
  const size = page.viewportSize()!
  await page.setViewportSize({ width: 390, height: 844 })
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  expect(await findings(page), `${name}, phone`).toEqual([])
  await page.screenshot({ path: `${shots}/${name}-phone.png` })
  await page.setViewportSize(size)
}
