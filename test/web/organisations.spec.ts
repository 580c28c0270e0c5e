// Servers that an organisation adds for itself, on its page.
import { expect, test, type Browser, type Page } from '@playwright/test'
import { look, open, serverRow } from './page'
import { startProvider, type Account, type Provider } from './provider'
import { Server, ownAddress } from './server'
import { upstream, type Upstream } from './upstream'

const ada: Account = { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.org', groups: ['acme-heads', 'beta-heads'] }
const bob: Account = { sub: 'bob', name: 'Bob Stone', email: 'bob@example.org', groups: ['acme-staff'] }

let provider: Provider
let front: Server
let behind: Upstream
let other: Upstream

test.beforeAll(async () => {
  provider = await startProvider(ada)
  behind = await upstream()
  other = await upstream()
  const address = ownAddress()
  front = new Server(`public_url = "${address}"
mcp.allowed_hosts = ["127.0.0.1"]
[identity.corp]\nissuer = "${provider.issuer}"\nclient_id = "hub"\nclient_secret = "s3cret"\nroles = ["author"]
[identity.corp.orgs]\n"acme-heads" = "acme/operator"\n"acme-staff" = "acme"\n"beta-heads" = "beta/operator"
[orgs.acme]\nmax_upstreams = 1
[orgs.acme.quota]\ncalls = 200\n`)
  front.address = address
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  for (const one of [provider, behind, other]) one?.close()
})

/** Signs somebody in, in a browser of their own. */
async function signIn(browser: Browser, account: Account, path: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage()
  provider.account = account
  await open(page, front, 'you')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await expect(page.getByRole('navigation').getByRole('link', { name: 'You' })).toBeVisible()
  await open(page, front, path)
  return page
}

test('an organisation adds, changes, disables and removes a server, which only its people have', async ({ browser }) => {
  const page = await signIn(browser, ada, 'organisation')
  const servers = page.getByRole('region', { name: 'Servers' })
  await expect(servers).toContainText('None was added')
  await servers.getByRole('button', { name: 'Add a server' }).click()
  const form = page.getByRole('dialog', { name: 'Add a server for acme' })
  const add = async (name: string, url: string) => {
    await form.getByLabel('URL').fill(url)
    await form.getByLabel('Name', { exact: true }).fill(name)
    await form.getByRole('button', { name: 'Connect' }).click()
  }
  await add('wiki', 'https://10.0.0.1/mcp')
  await expect(form.getByRole('alert')).toContainText('10.0.0.1: it is in a private network')
  await add('wiki', 'http://wiki.example/mcp')
  await expect(form.getByRole('alert')).toContainText('only https is allowed')
  await form.getByRole('button', { name: 'Add a header' }).click()
  await form.getByLabel('name of header 1').fill('X-Word')
  await form.getByLabel('value of header 1').fill('hush-hush')
  await add('wiki', `${behind.address}/mcp`)
  const row = serverRow(page, 'wiki')
  await expect(row.getByText('connected')).toBeVisible()
  await look(page, 'organisation-servers')

  await servers.getByRole('button', { name: 'Add a server' }).click()
  await add('more', `${other.address}/mcp`)
  await expect(form.getByRole('alert')).toContainText('the organisation acme may add 1 upstreams')
  await form.getByRole('button', { name: 'Cancel' }).click()

  await row.getByRole('button', { name: 'Edit' }).click()
  const change = page.getByRole('dialog', { name: 'Edit wiki' })
  await expect(change.getByLabel('name of header 1')).toHaveValue('X-Word')
  await expect(change.getByLabel('value of header 1')).toHaveValue('') // the server does not return it
  await change.getByLabel('URL').fill('https://192.168.0.1/mcp')
  await change.getByRole('button', { name: 'remove header X-Word' }).click()
  await change.getByRole('button', { name: 'Save' }).click()
  await expect(change.getByRole('alert')).toContainText('private network')
  await change.getByLabel('URL').fill(`${other.address}/mcp`)
  await look(page, 'organisation-server-edit')
  await change.getByRole('button', { name: 'Save' }).click()
  await expect(row).toContainText(other.address)
  await expect(row.getByText('connected')).toBeVisible()

  const bobs = await signIn(browser, bob, 'servers')
  await expect(serverRow(bobs, 'wiki').getByText('connected')).toBeVisible()
  await expect(bobs.getByRole('navigation').getByRole('link', { name: 'Organisation' })).toHaveCount(0)
  await row.getByRole('button', { name: 'Disable' }).click()
  await expect(row.getByRole('button', { name: 'Enable' })).toBeVisible()
  await expect(row.getByRole('button', { name: 'Edit' })).toHaveCount(0)
  await row.getByRole('button', { name: 'Enable' }).click()
  await expect(row.getByText('connected')).toBeVisible()

  await page.getByRole('banner').getByLabel('Organisation').selectOption('beta') // theirs are others
  await expect(page.getByRole('heading', { name: 'Servers of beta' })).toBeVisible()
  await expect(servers).toContainText('None was added')
  await page.getByRole('banner').getByLabel('Organisation').selectOption('acme')
  await row.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove wiki' }).click()
  await expect(servers).toContainText('None was added')
  await expect(serverRow(bobs, 'wiki')).toHaveCount(0)
  for (const one of [page, bobs]) await one.context().close()
})
