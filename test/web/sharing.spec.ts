// What people of one organisation do together: they share things, decide for each other,
// and see what the organisation has used.
import { expect, test, type Browser, type Locator, type Page } from '@playwright/test'
import { fakeModel, type Model } from './model'
import { look, open, write } from './page'
import { startProvider, type Account, type Provider } from './provider'
import { Server, ownAddress } from './server'
import { png } from './upstream'

const ada: Account = { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.org', groups: ['acme-heads', 'beta-staff'] }
const bob: Account = { sub: 'bob', name: 'Bob Stone', email: 'bob@example.org', groups: ['acme-staff'] }

let provider: Provider
let front: Server
let model: Model

test.beforeAll(async () => {
  provider = await startProvider(ada)
  model = await fakeModel()
  const address = ownAddress()
  front = new Server(`public_url = "${address}"
[identity.corp]\nissuer = "${provider.issuer}"\nclient_id = "hub"\nclient_secret = "s3cret"\nroles = ["author"]
[identity.corp.orgs]\n"acme-heads" = "acme/operator"\n"acme-staff" = "acme"\n"beta-staff" = "beta"
[orgs.acme.quota]\ncalls = 200\njobs = 40\n`, { LUANETTE_CHAT_BASE_URL: model.address, ANTHROPIC_API_KEY: 'sk-test' })
  front.address = address
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  provider?.close()
  model?.close()
})

/** Signs somebody in, in a browser of their own. */
async function signIn(browser: Browser, account: Account): Promise<Page> {
  const page = await (await browser.newContext()).newPage()
  provider.account = account
  await open(page, front, 'you')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await expect(page.getByRole('navigation').getByRole('link', { name: 'You' })).toBeVisible()
  return page
}

/** Starts a script as a job of the person of a page, which shows it then. */
async function startJob(page: Page, code: string): Promise<void> {
  await open(page, front, 'playground')
  await write(page, code)
  await page.getByRole('button', { name: 'Run as job' }).click()
  await expect(page).toHaveURL(/#\/jobs\/./)
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

const rowOf = (page: Page, table: string, text: string): Locator => page.getByRole('table', { name: table, exact: true }).getByRole('row').filter({ hasText: text })

test('a job is shared with a colleague, who sees it until that is taken back', async ({ browser }) => {
  const bobs = await signIn(browser, bob)
  const adas = await signIn(browser, ada)
  await startJob(adas, 'function describe() return { name = "tide_table" } end\nfunction main() return "high at noon" end')
  await expect(adas.getByRole('region', { name: 'Result' })).toContainText('high at noon')
  const address = new URL(adas.url()).hash.slice(2)
  await adas.getByRole('button', { name: 'Share' }).click()
  const dialog = adas.getByRole('dialog', { name: 'Share tide_table' })
  await dialog.getByLabel('With', { exact: true }).selectOption({ label: 'Bob Stone, bob@example.org' })
  await look(adas, 'share')
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  const holders = dialog.getByRole('region', { name: 'Shared with' })
  await expect(holders.getByRole('listitem')).toHaveText(/Bob Stone see/)

  await open(bobs, front, 'jobs')
  const row = rowOf(bobs, 'Jobs', 'tide_table')
  await expect(row).toContainText('Ada Lovelace shares it: see')
  await expect(row.getByRole('button', { name: 'Retry' })).toHaveCount(0)
  await bobs.getByLabel('Whose').selectOption('mine')
  await expect(row).toHaveCount(0)
  await bobs.getByLabel('Whose').selectOption('shared with me')
  await row.getByRole('link', { name: 'tide_table' }).click()
  await expect(bobs.getByRole('region', { name: 'Result' })).toContainText('high at noon')
  await expect(bobs.getByRole('button', { name: 'Share' })).toHaveCount(0)
  await open(bobs, front, 'you')
  await expect(rowOf(bobs, 'Shared with you', 'tide_table')).toContainText('Ada Lovelace')
  await look(bobs, 'shared')

  await dialog.getByLabel('With', { exact: true }).selectOption({ label: 'Bob Stone, bob@example.org' })
  await dialog.getByLabel(/^edit/).check()
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  await expect(holders.getByRole('listitem')).toHaveText(/Bob Stone edit/)
  await open(bobs, front, address)
  await expect(bobs.getByText('Ada Lovelace shares it: edit')).toBeVisible()
  await expect(bobs.getByRole('button', { name: 'Retry' })).toHaveCount(0) // its script is Ada's

  await holders.getByRole('button', { name: 'Remove Bob Stone' }).click()
  await expect(holders.getByRole('listitem')).toContainText('removed')
  await open(bobs, front, 'you')
  await expect(bobs.getByRole('region', { name: 'Shared with you' })).toContainText('Nothing')
  await holders.getByRole('button', { name: 'Undo' }).click()
  await expect(holders.getByRole('listitem')).toHaveText(/Bob Stone edit/)
  await expect(rowOf(bobs, 'Shared with you', 'tide_table')).toBeVisible() // an event tells
  for (const page of [adas, bobs]) await page.context().close()
})

test('a conversation is shared with a colleague, who reads it and goes on in a copy', async ({ browser }) => {
  const bobs = await signIn(browser, bob)
  const adas = await signIn(browser, ada)
  await open(adas, front, 'chat')
  await adas.getByLabel('Attach files').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') })
  await say(adas, 'what is on this picture?')
  await expect(adas.getByRole('log')).toContainText('I see a dot.')
  await adas.getByRole('button', { name: 'Share' }).click()
  const dialog = adas.getByRole('dialog', { name: 'Share what is on this picture?' })
  await dialog.getByLabel('With', { exact: true }).selectOption({ label: 'Bob Stone, bob@example.org' })
  await expect(dialog.getByLabel(/^edit/)).toHaveCount(0)
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  await expect(dialog.getByRole('listitem')).toHaveText(/Bob Stone see/)

  await rowOf(bobs, 'Shared with you', 'what is on this picture?').getByRole('link').click()
  const log = bobs.getByRole('log')
  await expect(log).toContainText('I see a dot.')
  await expect.poll(() => log.getByRole('img', { name: 'dot.png' }).evaluate((i: HTMLImageElement) => i.naturalWidth)).toBeGreaterThan(0)
  await expect(bobs.getByText('Ada Lovelace shares it: see')).toBeVisible()
  await expect(bobs.getByLabel('Message', { exact: true })).toHaveCount(0)
  await expect(bobs.getByRole('button', { name: /Share|Copy to go on|Delete/ })).toHaveCount(0)
  const list = bobs.getByRole('complementary', { name: 'Conversations' })
  await expect(list.getByRole('listitem')).toContainText('Ada Lovelace')

  await dialog.getByLabel('With', { exact: true }).selectOption({ label: 'Bob Stone, bob@example.org' })
  await dialog.getByLabel(/^use/).check()
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  const copy = bobs.getByRole('button', { name: 'Copy to go on' }) // an event tells
  await expect(copy).toBeVisible()
  await look(bobs, 'shared-conversation')
  await copy.click()
  await expect(list.getByRole('listitem')).toHaveCount(2)
  await expect(bobs.getByLabel('Message', { exact: true })).toBeVisible()
  await expect(log).toContainText('I see a dot.')
  await say(bobs, 'what is six times seven?')
  await expect(log).toContainText('It is 42.')
  await expect(log).toContainText('I see a dot.')
  await expect(log.getByRole('img', { name: 'dot.png' })).toBeVisible()
  await expect(adas.getByRole('log')).not.toContainText('It is 42.')
  for (const page of [adas, bobs]) await page.context().close()
})

test('an organisation shows its quotas and people, and somebody in two chooses', async ({ browser }) => {
  await (await signIn(browser, bob)).context().close()
  const page = await signIn(browser, ada)
  await page.getByRole('navigation').getByRole('link', { name: 'Organisation' }).click()
  await expect(page.getByRole('region', { name: 'Quotas' })).toContainText('of 200')
  await expect(page.getByRole('region', { name: 'Quotas' })).toContainText(/of 40.*renews in/)
  await expect(rowOf(page, 'Members', 'Bob Stone')).toContainText('author')
  await expect(rowOf(page, 'Members', 'Ada Lovelace')).toContainText('operator')
  await look(page, 'organisation')
  const head = page.getByRole('banner').getByLabel('Organisation')
  await expect(head).toHaveValue('acme')
  await head.selectOption('beta')
  await expect(page.getByText('There is no page at')).toBeVisible() // no operator there
  await expect(head).toHaveValue('beta')
  await open(page, front, 'you')
  await expect(page.getByRole('region', { name: 'Who you are' }).getByLabel('Organisation')).toHaveValue('beta')
  await page.context().close()
})

test('somebody lets a colleague decide, and ends that', async ({ browser }) => {
  await (await signIn(browser, bob)).context().close()
  const page = await signIn(browser, ada)
  await open(page, front, 'approvals')
  const panel = page.getByRole('region', { name: 'Decisions in your place' })
  await panel.getByLabel('Let').selectOption('Bob Stone')
  await panel.getByLabel('decide for the role').selectOption('operator')
  await panel.getByRole('combobox', { name: 'for', exact: true }).selectOption('3 days')
  await panel.getByRole('button', { name: 'Delegate' }).click()
  await expect(panel.getByRole('listitem')).toHaveText(/Bob Stone decides for you with the role operator until/)
  await look(page, 'delegation')
  const bobs = await signIn(browser, bob)
  await open(bobs, front, 'approvals')
  await expect(bobs.getByRole('region', { name: 'Decisions in your place' }).getByRole('listitem')).toContainText('You decide for Ada Lovelace')
  await panel.getByRole('button', { name: 'End' }).click()
  await expect(panel.getByRole('listitem')).toHaveCount(0)
  for (const one of [page, bobs]) await one.context().close()
})

test('a key of a person has scopes, a day on which it ends, and limits', async ({ browser }) => {
  const page = await signIn(browser, ada)
  const keys = page.getByRole('region', { name: 'Your keys' })
  await keys.getByLabel('Name of a new key').fill('watcher')
  await keys.getByLabel('use tools and scripts').uncheck()
  await keys.getByLabel('see what everybody does').check()
  await keys.getByLabel('Expires').selectOption('on a day…')
  await keys.getByRole('textbox', { name: 'Day' }).fill(new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10))
  await keys.getByText('Restrict it').click()
  await keys.getByLabel('Requests a minute').fill('120')
  await keys.getByLabel('Only these tools').fill('github.get_*')
  await look(page, 'key')
  await keys.getByRole('button', { name: 'Create key' }).click()
  const made = page.getByRole('dialog', { name: 'The key watcher' })
  await made.getByLabel('I have stored the key').check()
  await made.getByRole('button', { name: 'Continue' }).click()
  const row = rowOf(page, 'Keys', 'watcher')
  await expect(row).toContainText('see its own activity, see what everybody does')
  await expect(row).toContainText('organisation acme')
  await expect(row).toContainText('tools github.get_*; 120 requests a minute')
  await expect(row).toContainText(/on \d+ \w+/)
  await page.context().close()
})
