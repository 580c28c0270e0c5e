// Helpers for tests of the page.
import { expect, test, type Locator, type Page } from '@playwright/test'
import type { Server } from './server'

export const shots = '../../.cache/web/screenshots'

/** Fails a test when the page violates its content security policy, logs an error, or sends a request to another server. */
export function failOnPageErrors(front: () => Server): void {
  test.beforeEach(({ page }) => {
    page.on('pageerror', (e) => { throw e })
    page.on('console', (m) => {
      if (m.type() === 'error' && !m.text().includes('ERR_CONNECTION') && !m.text().includes('net::') && !/status of (40|428)/.test(m.text())) throw new Error(`console: ${m.text()}`)
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
