// What holds on every page, whatever it does.
import { expect, test, type Page } from '@playwright/test'
import type { House } from './house'

export const shots = '../../.cache/web/screenshots'

/** Lets no page break a rule of the content security policy, fail in the console, or ask for anything from elsewhere. */
export function guard(front: () => House): void {
  test.beforeEach(({ page }) => {
    page.on('pageerror', (e) => { throw e })
    page.on('console', (m) => {
      if (m.type() === 'error' && !m.text().includes('ERR_CONNECTION') && !m.text().includes('net::') && !m.text().includes('status of 40')) throw new Error(`console: ${m.text()}`)
    })
    page.on('request', (r) => {
      if (!r.url().startsWith(front().address) && !/^(data|blob):/.test(r.url())) throw new Error(`a request to ${r.url()}`)
    })
  })
}

export async function open(page: Page, front: House, path: string): Promise<void> {
  await page.goto(`${front.address}/#/${path}`)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
}

/** Puts text into the code editor. */
export async function write(page: Page, code: string): Promise<void> {
  await page.getByRole('textbox', { name: 'script' }).click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  if (code) await page.keyboard.insertText(code)
}
