// People who sign in: their own page, and the page on which an administrator sees them.
import { expect, test, type Page } from '@playwright/test'
import { look, open } from './page'
import { startProvider, type Account, type Provider } from './provider'
import { Server, ownAddress } from './server'

const ada: Account = { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.org', groups: ['admins', 'acme'] }
const bob: Account = { sub: 'bob', name: 'Bob Stone', email: 'bob@example.org', groups: [] }

let provider: Provider
let front: Server

test.beforeAll(async () => {
  provider = await startProvider(ada)
  const address = ownAddress()
  front = new Server(`public_url = "${address}"\n[identity.corp]\nissuer = "${provider.issuer}"\nclient_id = "hub"\nclient_secret = "s3cret"\nroles = ["user"]\n[identity.corp.groups]\n"admins" = ["admin"]\n`)
  front.address = address
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  provider?.close()
})

/** Signs somebody in with the link of the login page. */
async function signIn(page: Page, account: Account, path: string): Promise<void> {
  provider.account = account
  await open(page, front, path)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await expect(page.getByRole('navigation').getByRole('link', { name: 'You' })).toBeVisible()
}

test('somebody signs in, makes a key and deletes it', async ({ page }) => {
  await signIn(page, bob, 'you')
  await open(page, front, 'you')
  await expect(page.getByRole('region', { name: 'Who you are' })).toContainText('Bob Stone')
  const keys = page.getByRole('region', { name: 'Your keys' })
  await keys.getByLabel('Name of a new key').fill('laptop')
  await keys.getByRole('button', { name: 'Create key' }).click()
  const made = page.getByRole('dialog', { name: 'The key laptop' })
  const token = await made.locator('.secret').innerText()
  await made.getByLabel('I have stored the key').check()
  await made.getByRole('button', { name: 'Continue' }).click()
  const asKey = () => fetch(`${front.address}/api/v1/me`, { headers: { Authorization: `Bearer ${token}` } })
  expect(await (await asKey()).json()).toMatchObject({ name: 'Bob Stone', client: 'key laptop' })
  await expect(keys.getByRole('row').filter({ hasText: 'laptop' })).toContainText('use tools and scripts')
  await look(page, 'you')
  await keys.getByRole('button', { name: 'Revoke' }).click()
  await expect.poll(async () => (await asKey()).status).toBe(401)
})

test('an administrator sees people with their roles, and blocks and unblocks one', async ({ page, browser }) => {
  const other = await (await browser.newContext()).newPage()
  await signIn(other, bob, 'you')
  await signIn(page, ada, 'people/people')
  await open(page, front, 'people/people')
  const row = page.getByRole('table', { name: 'People' }).getByRole('row').filter({ hasText: 'Bob Stone' })
  await expect(row).toContainText('bob@example.org')
  await expect(row).toContainText('user')
  await expect(page.getByRole('row').filter({ hasText: 'Ada Lovelace' })).toContainText('admin')
  await look(page, 'people')
  await row.getByRole('button', { name: 'Block' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Block Bob Stone' }).click()
  await expect(row).toContainText('blocked')
  await other.reload()
  await expect(other.getByRole('heading', { level: 1, name: 'Log in' })).toBeVisible()
  await row.getByRole('button', { name: 'Unblock' }).click()
  await expect(row.getByText('active')).toBeVisible()
  await page.getByLabel('Find a person').fill('lovelace')
  await expect(row).toHaveCount(0)
  await other.context().close()
})
