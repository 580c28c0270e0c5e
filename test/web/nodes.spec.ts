// Two nodes on one Postgres, shown on the page of one of them.
import { expect, test } from '@playwright/test'
import { Server } from './server'
import { Postgres, programs } from './postgres'

test.skip(!programs(), 'Postgres is not installed (make system)')
test.setTimeout(180_000)

const postgres = new Postgres()
const config = (name: string) => `node = "${name}"\n`
const oak = new Server(config('oak'), { LUANETTE_DATABASE: postgres.url })
const elm = new Server(config('elm'), { LUANETTE_DATABASE: postgres.url })

test.beforeAll(async () => {
  test.setTimeout(180_000) // the first start on an empty Postgres takes a while
  await postgres.start()
  await oak.start()
  await elm.start()
})

test.afterAll(async () => {
  await oak.remove()
  await elm.remove()
  await postgres.remove()
})

test('nodes are listed, and events of one are shown live on the page of the other', async ({ page }) => {
  await page.goto(await oak.signInLink())
  const nodes = page.getByRole('table', { name: 'Nodes' })
  await expect(nodes.getByRole('row')).toHaveCount(3) // with the header
  await expect(nodes.getByRole('row', { name: /oak this node/ })).toContainText('up')
  await expect(nodes.getByRole('row', { name: /elm/ })).toContainText(elm.address)

  await page.goto(`${oak.address}/#/jobs`)
  const stored = await elm.call('script_store', { content: 'function describe() return {name = "planted", description = "a test"} end function main() return "done at elm" end' })
  const hash = String(stored.hash ?? stored.script_hash)
  const started = await elm.call('lua_execute', { script_hash: hash }) // the page is not reloaded
  await expect(page.getByRole('link', { name: 'planted' })).toBeVisible()
  await expect(page.getByRole('row', { name: /planted/ })).toContainText('done')
  expect(started.job_id).toBeTruthy()

  await page.goto(`${oak.address}/#/`)
  await expect(nodes.getByRole('row')).toHaveCount(3)
  await elm.stop()
  await expect(nodes).toHaveCount(0) // a single node shows no list
})
