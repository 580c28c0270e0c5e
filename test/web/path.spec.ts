// A server whose public address has a path of its own: the page asks for nothing outside of it.
import { expect, test } from '@playwright/test'
import { Server, ownAddress } from './server'

const address = ownAddress()
const front = new Server(`public_url = "${address}/team/luanette/"\n`)

test.beforeAll(async () => {
  front.address = address
  await front.start()
})

test.afterAll(() => front.remove())

test('the page works below a path', async ({ page }) => {
  const outside: string[] = []
  page.on('request', (r) => {
    if (!r.url().startsWith(`${address}/team/luanette/`) && !/^(data|blob):/.test(r.url())) outside.push(r.url())
  })
  page.on('pageerror', (e) => { throw e })
  await page.goto((await front.signInLink()).replace(address, `${address}/team/luanette`))
  const { hash } = await front.call('call_tool', { name: 'script_store', arguments: { content: 'return 1' } })
  await page.goto(`${address}/team/luanette/#/scripts/${String(hash)}`)
  const saved = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  expect((await saved).url()).toContain('/team/luanette/api/v1/library/')
  for (const path of ['overview', 'servers', 'tools', 'scripts', 'approvals', 'activity', 'traces', 'docs', 'you']) {
    await page.goto(`${address}/team/luanette/#/${path}`)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  }
  expect(outside).toEqual([])
})
