// Other versions of the packages of servers: the page asks, shows what changes, and acts. What
// the server answers is made up; that it is so is tested in internal/config/setup.
import { expect, test } from '@playwright/test'
import { failOnPageErrors, look, open } from './page'
import { Server } from './server'
import { upstream, type Upstream } from './upstream'

let front: Server
let gallery: Upstream

test.beforeAll(async () => {
  gallery = await upstream()
  front = new Server(`[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n`)
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  gallery?.close()
})

failOnPageErrors(() => front)

test('a newer version is looked for, read, used, and taken back', async ({ page }) => {
  const sent: string[] = []
  let version = '1.0.0', previous = ''
  await page.route('**/api/v1/upstreams', async (r) => {
    const answer = (await (await r.fetch()).json()) as { upstreams: object[] }
    await r.fulfill({ json: { ...answer, upstreams: answer.upstreams.map((u) => ({ ...u, package: `tides ${version}` })) } })
  })
  await page.route('**/api/v1/setup/packages**', async (r) => {
    const path = new URL(r.request().url()).pathname
    if (r.request().method() === 'GET') {
      await r.fulfill({ json: { programs: true, packages: [{ upstream: 'gallery', package: 'tides', version, previous, installed_at: new Date().toISOString(), wanted: '2.0.0', latest: '3.0.0' }] } })
      return
    }
    sent.push(`${path.split('/').pop()} ${r.request().postData() ?? ''}`)
    const dry = r.request().postData()?.includes('"dry_run":true')
    if (!dry) [version, previous] = [previous || '2.0.0', version]
    await r.fulfill({ json: { package: 'tides', from: '1.0.0', to: '2.0.0', added: ['moon@1.0.0'], same: 1, in_effect: !dry, tools: [{ kind: 'changed', name: 'high', difference: 'description\n  - When it is high\n  + When it is highest' }, { kind: 'gone', name: 'low' }] } })
  })

  await open(page, front, 'servers')
  const packages = page.getByRole('region', { name: 'Packages' })
  await packages.getByRole('button', { name: 'Look for newer versions' }).click()
  await expect(packages.getByRole('row').filter({ hasText: 'tides' })).toContainText('2.0.0 3.0.0 is outside of what the configuration allows')
  await packages.getByRole('button', { name: 'What would change…' }).click()
  const dialog = page.getByRole('dialog', { name: 'tides 1.0.0 → 2.0.0' })
  await expect(dialog).toContainText('moon@1.0.0')
  await expect(dialog).toContainText('2 tools differ, 1 as before')
  await expect(dialog).toContainText('+ When it is highest')
  await look(page, 'packages')
  await dialog.getByRole('button', { name: 'Upgrade to 2.0.0' }).click()
  await expect(dialog).toBeHidden()
  await expect(page.getByText('gallery uses tides 2.0.0').first()).toBeVisible()
  await packages.getByRole('button', { name: 'Back to 1.0.0' }).click()
  await expect(packages.getByRole('button', { name: 'What would change…' })).toBeVisible()
  expect(sent.map((s) => s.trim())).toEqual(['upgrade {"to":"2.0.0","dry_run":true}', 'upgrade {"to":"2.0.0","dry_run":false}', 'rollback'])
})
