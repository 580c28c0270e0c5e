// Two programs on one Postgres, seen on the page of one of them.
import { expect, test } from '@playwright/test'
import { House } from './house'
import { Postgres, programs } from './postgres'

test.skip(!programs(), 'Postgres is not installed (make system)')
test.setTimeout(180_000)

const postgres = new Postgres()
const config = (name: string) => `node = "${name}"\n`
const oak = new House(config('oak'), { LUANETTE_DATABASE: postgres.url })
const elm = new House(config('elm'), { LUANETTE_DATABASE: postgres.url })

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

test('the nodes are listed, and what one does is seen live at the other', async ({ page }) => {
  await page.goto(`${oak.address}/`)
  const nodes = page.getByRole('table', { name: 'Nodes' })
  await expect(nodes.getByRole('row')).toHaveCount(3) // with the head
  await expect(nodes.getByRole('row', { name: /oak this one/ })).toContainText('up')
  await expect(nodes.getByRole('row', { name: /elm/ })).toContainText(elm.address)

  await page.goto(`${oak.address}/#/jobs`)
  const stored = await elm.call('script_store', { content: 'function describe() return {name = "planted", description = "a test"} end function main() return "done at elm" end' })
  const hash = String(stored.hash ?? stored.script_hash)
  const begun = await elm.call('lua_execute', { script_hash: hash }) // nobody reloads the page
  await expect(page.getByText('planted')).toBeVisible()
  await expect(page.getByRole('row', { name: /planted/ })).toContainText('complete')
  expect(begun.job_id).toBeTruthy()

  await page.goto(`${oak.address}/#/`)
  await expect(page.locator('table.feed')).toContainText('job planted: complete')

  await elm.stop()
  await expect(nodes).toHaveCount(0) // who is alone shows no list
})
