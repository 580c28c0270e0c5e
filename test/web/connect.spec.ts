// Servers from the registry, from other clients and by command; their tools; approvals by
// key. The servers are real ones from npm.
import { expect, test, type Page } from '@playwright/test'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HTTPServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { failOnPageErrors, look, open as openAt, shots } from './page'
import { Server, ownAddress } from './server'

const npm = (name: string) => resolve('..', 'servers', 'node_modules', '.bin', name)

let front: Server
let registry: HTTPServer

/** An API with one operation. */
const pets = { openapi: '3.0.0', info: { title: 'Pets', version: '1' }, paths: { '/pets': { get: { operationId: 'listPets', summary: 'Lists pets.', responses: { 200: { description: 'all', content: { 'application/json': { schema: { type: 'array', items: { type: 'object' } } } } } } } } } }

/** A registry with a server at a URL, which is this one, and one that is a program. */
function startRegistry(): Promise<string> {
  const listing = (name: string, rest: object) => ({ server: { name, description: `The server ${name}.`, version: '1.0.0', ...rest }, _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true } } })
  const all = [
    listing('io.github.acme/far-weather', { title: 'Far weather', remotes: [{ type: 'streamable-http', url: `${ownAddress()}/mcp`, headers: [{ name: 'X-Key', description: 'your key', isRequired: true, isSecret: true }] }] }),
    listing('io.github.acme/weather-program', { packages: [{ registryType: 'npm', identifier: '@acme/weather', version: '1.0.0', transport: { type: 'stdio' } }] }),
  ]
  registry = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, 'http://x').pathname)
    if (path === '/openapi.json') {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(pets))
      return
    }
    if (path === '/pets') {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('[{"name":"Rex"}]')
      return
    }
    const one = all.find((l) => path.includes(l.server.name))
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(one ?? { servers: all, metadata: {} }))
  })
  return new Promise((done) => registry.listen(0, '127.0.0.1', () => done(`http://127.0.0.1:${(registry.address() as AddressInfo).port}`)))
}

test.beforeAll(async () => {
  const listed = await startRegistry()
  front = new Server(() => `[upstreams.files]\ncommand = "${npm('mcp-server-filesystem')}"\nargs = [".", "${realpathSync(front.folder)}"]\n\n[upstreams.kept]\n# remembers\ncommand = "${npm('mcp-server-memory')}" # from npm\n\n[approvals]\nkept = "writes"\nfiles = "writes"\n\n[registry]\nurl = "${listed}"\n`)
  front.address = ownAddress()
  mkdirSync(join(front.folder, '.cursor'))
  writeFileSync(join(front.folder, '.cursor', 'mcp.json'), JSON.stringify({ mcpServers: { recall: { command: npm('mcp-server-memory'), env: { MEMORY_FILE_PATH: join(front.folder, 'recall.json') } } } }))
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  registry?.close()
})

failOnPageErrors(() => front)

const open = (page: Page, path: string) => openAt(page, front, path)

const row = (page: Page, name: string) => page.getByRole('table', { name: 'Servers' }).getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
const config = () => readFileSync(join(front.folder, 'luanette.toml'), 'utf8')

test('a server is added by its command, restarted, and removed with undo', async ({ page }) => {
  await page.context().clearCookies()
  await open(page, 'servers?add=command')
  await expect(page.getByText('Sign this browser in with luanette open')).toBeVisible()
  await page.goto(await front.signInLink())
  await open(page, 'servers?add=command')
  const dialog = page.getByRole('dialog', { name: 'Connect a server' })
  await dialog.getByLabel('Command, or JSON').fill(`'${npm('mcp-server-memory')}'`)
  await expect(dialog.getByLabel('Name', { exact: true })).toHaveValue('memory')
  await dialog.getByLabel('Name', { exact: true }).fill('extra')
  await dialog.getByText('Environment variables').click()
  await dialog.getByLabel('One NAME=value a line').fill(`MEMORY_FILE_PATH=${join(front.folder, 'extra.json')}`)
  await page.screenshot({ path: `${shots}/connect-command.png` })
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await expect(row(page, 'extra').getByText('connected')).toBeVisible()
  expect(config()).toContain('[upstreams.extra]')
  const added = page.getByLabel('Added servers')
  await expect(added).toContainText('sandbox') // what it means
  await added.getByRole('button', { name: 'Understood' }).click()
  await expect(added).toHaveCount(0)

  await front.call('call_tool', { name: 'extra.read_graph', arguments: {} })
  await row(page, 'extra').getByRole('link', { name: 'extra' }).click()
  await expect(page.getByRole('img', { name: /^calls and errors per minute: calls at most [1-9]/ })).toBeVisible()
  await expect(page.getByRole('img', { name: /^latency: p50 at most/ })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Tools' })).toContainText(/9 tools, \S+ tokens/)
  await expect(page.getByRole('region', { name: 'State' })).toContainText(/luanette\.toml:\d+/)
  await page.getByRole('button', { name: 'Restart' }).click()
  await expect(page.getByText('extra: restarted')).toBeVisible()
  await expect(page.getByRole('region', { name: 'State' }).or(page.locator('.title')).getByText('connected', { exact: true })).toBeVisible()
  await page.screenshot({ path: `${shots}/server-added.png`, fullPage: true })

  await page.getByRole('button', { name: 'Remove' }).click()
  await expect(page).toHaveURL(/#\/servers$/) // the list, once it is removed
  await expect(row(page, 'kept')).toBeVisible()
  await expect(row(page, 'extra')).toHaveCount(0)
  expect(config()).not.toContain('[upstreams.extra]')
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(row(page, 'extra').getByText('connected')).toBeVisible()
})

test('servers of other clients, pasted ones and those of the registry are added', async ({ page }) => {
  await open(page, 'servers?add=clients')
  const dialog = page.getByRole('dialog', { name: 'Connect a server' })
  await expect(dialog.getByLabel(/recall/)).toBeChecked()
  await dialog.getByRole('button', { name: 'Import 1' }).click()
  await expect(row(page, 'recall').getByText('connected')).toBeVisible()

  await page.getByRole('button', { name: 'Connect a server' }).click()
  await dialog.getByRole('tab', { name: 'Command or JSON' }).click()
  await dialog.getByLabel('Command, or JSON').fill(JSON.stringify({ mcpServers: { pasted: { command: npm('mcp-server-everything') } } }))
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await expect(row(page, 'pasted').getByText('connected')).toBeVisible()

  await page.getByRole('button', { name: 'Connect a server' }).click()
  await dialog.getByRole('tab', { name: 'Registry' }).click()
  await dialog.getByRole('searchbox').fill('weather')
  const found = dialog.getByRole('listitem').filter({ hasText: 'Far weather' })
  await expect(dialog.getByRole('listitem').filter({ hasText: 'weather-program' })).toContainText('npx -y @acme/weather@1.0.0')
  await look(page, 'connect-registry')
  await found.getByRole('button', { name: 'Add' }).click()
  await dialog.getByLabel(/X-Key/).fill('s3cret')
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await expect(row(page, 'far-weather')).toBeVisible()
  expect(config()).not.toContain('s3cret')
})

test('a server of the configuration is edited in its file, with errors at their field and undo', async ({ page }) => {
  await open(page, 'servers/kept')
  const state = page.getByRole('region', { name: 'State' })
  await expect(state).toContainText('not restarted')
  await expect(page.getByRole('region', { name: 'Sandbox' })).toContainText('off')
  await page.getByRole('button', { name: 'Edit' }).click()
  const dialog = page.getByRole('dialog', { name: 'Edit kept' })
  await expect(dialog.getByLabel('Command')).toHaveValue(npm('mcp-server-memory'))
  await expect(dialog.getByRole('button', { name: 'Save' })).toBeDisabled()
  await dialog.getByLabel('Longest time of a call').fill('soon')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(dialog.locator('.field').filter({ hasText: 'Longest time' }).getByRole('alert')).toContainText('"soon" is not valid')
  await dialog.getByLabel('Longest time of a call').fill('20s')
  await dialog.getByRole('button', { name: 'Add an environment variable' }).click()
  await dialog.getByLabel('name of environment variable 1').fill('MEMORY_FILE_PATH')
  await dialog.getByLabel('value of environment variable 1').fill(join(front.folder, 'kept.json'))
  await page.screenshot({ path: `${shots}/server-edit.png` })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(dialog).toHaveCount(0)
  expect(config()).toContain(`# remembers\ncommand = "${npm('mcp-server-memory')}" # from npm\n`)
  expect(config()).toContain('timeout = "20s"')
  expect(config()).toContain('kept.json')
  await expect(state).toContainText('1 restart')

  await page.getByRole('button', { name: 'Edit' }).click()
  await expect(dialog.getByLabel('value of environment variable 1')).toHaveValue('') // it is not shown
  await dialog.getByLabel('Sandbox', { exact: true }).selectOption('open')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(page.getByRole('region', { name: 'Sandbox' })).toContainText('open')
  expect(config()).toContain('kept.json')
  await expect(page.getByRole('region', { name: 'Network connections' })).toBeVisible()
  await page.screenshot({ path: `${shots}/server-sandbox.png`, fullPage: true })
  await page.getByText(/kept saved in/).last().getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByRole('region', { name: 'Sandbox' })).toContainText('off')
  expect(config()).not.toMatch(/\[upstreams\.kept\][^[]*sandbox/)
})

/** Starts the shop of Luanette's tests, with graphql-yoga, and returns its process and URL. */
async function startShop() {
  const folder = join(front.folder, 'shop')
  mkdirSync(folder)
  for (const file of ['shop.mjs', 'shop.graphql']) copyFileSync(resolve('..', '..', 'internal', 'apis', 'graphql', 'testdata', file), join(folder, file))
  symlinkSync(resolve('..', 'servers', 'node_modules'), join(folder, 'node_modules'))
  const shop = spawn('node', ['shop.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(shop.stdout, 'data')
  return { shop, url: String(line).trim() }
}

test('a GraphQL service is added by its address', async ({ page }) => {
  const { shop, url } = await startShop()
  await open(page, 'servers?add=api')
  const dialog = page.getByRole('dialog', { name: 'Connect a server' })
  await dialog.getByLabel('URL or file of the document').fill(url)
  await expect(dialog.getByLabel('Kind')).toHaveValue('graphql')
  await expect(dialog.getByLabel('URL of the API')).toHaveCount(0)
  await dialog.getByLabel('Name', { exact: true }).fill('shop')
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await expect(row(page, 'shop').getByText('connected')).toBeVisible()
  const result = await front.call('call_tool', { name: 'shop.product', arguments: { id: 'p1', fields: 'name' } }).catch((e: Error) => e.message)
  expect(JSON.stringify(result)).toContain('Thing 1')
  shop.kill()
})

test('a pasted address of an API chooses the way, and its operations become tools', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(page, 'servers?add=url')
  const dialog = page.getByRole('dialog', { name: 'Connect a server' })
  const source = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
  await page.evaluate((text) => navigator.clipboard.writeText(text), `${source}/openapi.json`)
  await dialog.getByRole('textbox', { name: 'URL' }).focus()
  await expect(dialog.getByRole('textbox', { name: 'URL' })).toBeFocused()
  await page.keyboard.press('Control+v')
  await expect(dialog.getByRole('tab', { name: 'API' })).toHaveAttribute('aria-selected', 'true')
  await expect(dialog.getByLabel('URL or file of the document')).toHaveValue(`${source}/openapi.json`)
  await dialog.getByLabel('Name', { exact: true }).fill('pets')
  await dialog.getByLabel('URL of the API').fill(source)
  await page.screenshot({ path: `${shots}/connect-api.png` })
  await dialog.getByRole('button', { name: 'Connect' }).click()
  await expect(row(page, 'pets').getByText('connected')).toBeVisible()
  expect(config()).toContain(`openapi = '${source}/openapi.json'`)
  const result = await front.call('call_tool', { name: 'pets.listPets', arguments: {} }).catch((e: Error) => e.message)
  expect(JSON.stringify(result)).toContain('Rex')

  await page.getByRole('button', { name: 'Connect a server' }).click()
  await dialog.getByRole('textbox', { name: 'URL' }).fill('npx -y some-server')
  await dialog.getByRole('button', { name: 'Add it as that' }).click()
  await expect(dialog.getByLabel('Command, or JSON')).toHaveValue('npx -y some-server')
})

test('tools are grouped by server, and renamed, pinned and disabled with undo', async ({ page }) => {
  await open(page, 'tools?server=files')
  const group = page.getByRole('group', { name: 'tools of files' })
  await expect(group).toContainText(/14 tools, \S+ tokens/)
  await group.getByRole('link', { name: 'files.list_directory', exact: true }).click()
  const shown = page.getByRole('region', { name: 'Tool', exact: true })
  await shown.getByRole('button', { name: 'Rename' }).click()
  const dialog = page.getByRole('dialog', { name: 'Rename files.list_directory' })
  await dialog.getByLabel('Name').fill('ls')
  await dialog.getByRole('button', { name: 'Rename' }).click()
  await expect(page).toHaveURL(/tools\/files\.ls$/)
  await expect(shown).toContainText('the server calls it list_directory')
  expect(config()).toContain('aliases = {ls = "list_directory"}')
  await shown.getByRole('button', { name: 'Pin' }).click()
  await expect(shown.getByRole('button', { name: 'Unpin' })).toBeVisible()
  expect(config()).toContain('expose = ["list_directory"]')
  await page.screenshot({ path: `${shots}/tool.png`, fullPage: true })
  await shown.getByRole('button', { name: 'Disable' }).click()
  await expect(group.getByRole('listitem').filter({ hasText: 'files.list_directory' })).toContainText('disabled')
  await expect(group).toContainText('13 tools')
  await page.getByText('files.ls disabled').getByRole('button', { name: 'Undo' }).click()
  await expect(group).toContainText('14 tools')
  await expect(group.getByRole('link', { name: 'files.ls', exact: true })).toBeVisible()
})

test('a tool takes its arguments as JSON, is copied as a command, and lists its last calls', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(page, 'tools/files.list_allowed_directories')
  await page.getByRole('button', { name: 'Try it' }).click()
  const result = page.getByRole('region', { name: 'Result' })
  await expect(result).toContainText('Allowed directories')
  await result.getByRole('button', { name: 'JSON' }).click()
  await expect(result.locator('pre')).toContainText('"structuredContent"')
  await expect(page.getByRole('list', { name: 'Last calls' }).getByRole('link')).not.toHaveCount(0)
  await page.getByRole('list', { name: 'Last calls' }).getByRole('link').first().click()
  await expect(page.locator('.waterfall .bar').first()).toBeVisible()

  await open(page, 'tools/files.read_text_file')
  await expect(page.getByRole('link', { name: 'OpenAPI document of files' })).toHaveAttribute('href', './openapi.json?namespace=files')
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(page.locator('.field').filter({ hasText: 'path' }).getByRole('alert')).toHaveText('This field is required.')
  await expect(page.getByLabel(/^path/)).toBeFocused()
  await page.getByRole('button', { name: 'JSON' }).click()
  await page.getByLabel('Arguments as JSON').fill(JSON.stringify({ path: resolve('package.json'), head: 2 }))
  await page.getByRole('button', { name: 'Copy as command' }).click()
  const command = await page.evaluate(() => navigator.clipboard.readText())
  expect(command).toContain('luanette call --server')
  const binary = resolve(process.env.LUANETTE ?? '../../bin/luanette')
  const { stdout } = await promisify(execFile)('sh', ['-c', command.replace(/^luanette/, `'${binary}'`)], { env: { PATH: process.env.PATH ?? '', HOME: front.folder } })
  expect(stdout).toContain('{')
  await page.getByRole('button', { name: 'Form' }).click()
  await expect(page.getByLabel('head')).toHaveValue('2')
  await page.getByRole('button', { name: 'Try it' }).click()
  await expect(result).toContainText('"name"')
})

test('approvals are decided with keys, and the outcome stays', async ({ page }) => {
  const start = async (word: string) => {
    const { hash } = await front.call('script_store', { content: `function describe() return {name = "save_${word}", description = "Saves."} end function main() mcp.kept.create_entities{entities = {{name = "${word}", entityType = "word", observations = {"said"}}}} fs.write("note.txt", "${word}\\n") end` })
    return (await front.call('lua_execute', { script_hash: hash })).job_id
  }
  const status = (id: unknown) => expect.poll(async () => (await front.call('job_status', { job_id: id })).status)
  const [first, second] = [await start('one'), await start('two')]
  await open(page, 'approvals')
  const waiting = page.getByRole('region', { name: 'Waiting' }).getByRole('link')
  await expect(waiting).toHaveCount(2)
  const card = page.getByRole('article', { name: 'approval of kept.create_entities' })
  await expect(waiting.nth(0)).toHaveAttribute('aria-current', 'true')
  await expect(card).toContainText('two') // the newest first
  await expect(card.locator('.diff')).toContainText('+two')
  await page.keyboard.press('j')
  await expect(waiting.nth(1)).toHaveAttribute('aria-current', 'true')
  await expect(card).toContainText('one')
  await page.keyboard.press('k')
  await expect(card).toContainText('two')
  await page.screenshot({ path: `${shots}/approvals-keys.png`, fullPage: true })
  await page.keyboard.press('d')
  await expect(waiting).toHaveCount(1)
  await page.keyboard.press('a')
  await expect(waiting).toHaveCount(0)
  const decided = page.getByRole('table', { name: 'Recent decisions' }).getByRole('row')
  await expect(decided.filter({ hasText: 'allowed' })).toHaveCount(1)
  await expect(decided.filter({ hasText: 'denied' })).toHaveCount(1)
  await status(first).toBe('complete')
  await status(second).toBe('failed')
  await decided.filter({ hasText: 'denied' }).getByRole('link', { name: 'kept.create_entities' }).click()
  await expect(card).toContainText('denied')
  await page.keyboard.press('a') // it is decided already
  await expect(card).toContainText('denied')
})

test('a plan shows what a tool of a server changes in a file', async ({ page }) => {
  const file = join(realpathSync(front.folder), 'plan.txt') // the server may use this folder
  writeFileSync(file, 'one\ntwo\n')
  const { hash } = await front.call('script_store', { content: `function describe() return {name = "rewrite", description = "Rewrites."} end function main() mcp.files.write_file{path = ${JSON.stringify(file)}, content = "one\\n2\\n"} mcp.files.write_file{path = "/etc/passwd", content = "x"} end` })
  await front.call('lua_execute', { script_hash: hash })
  await open(page, 'approvals')
  const card = page.getByRole('article', { name: 'approval of files.write_file' })
  await expect(card.locator('.diff')).toContainText('-two')
  await expect(card.locator('.diff')).toContainText('+2')
  await expect(card).toContainText(/What the file has now is not shown: files\.read_text_file: Access denied/)
  await page.screenshot({ path: `${shots}/approval-file.png`, fullPage: true })
  await page.keyboard.press('d')
  await expect(card).toHaveCount(0)
  expect(readFileSync(file, 'utf8')).toBe('one\ntwo\n')
})
