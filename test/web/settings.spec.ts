// Settings and sets of tools that are changed on the page, and the model of the chat that is set up there.
import { expect, test } from '@playwright/test'
import { createServer, type Server as Listener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { failOnPageErrors, look, open } from './page'
import { Server } from './server'
import { upstream, type Upstream } from './upstream'

let front: Server
let model: Listener
let gallery: Upstream
const keys: (string | undefined)[] = []

test.beforeAll(async () => {
  model = createServer((request, response) => {
    keys.push(request.headers.authorization)
    const known = request.headers.authorization === 'Bearer sk-right'
    response.writeHead(known ? 200 : 401, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(known ? { choices: [{ message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 1 } } : { error: { message: 'wrong key' } }))
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  gallery = await upstream()
  front = new Server(`# mine\n[log]\nlevel = "info" # for now\n[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n`)
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  model?.close()
  gallery?.close()
})

failOnPageErrors(() => front)

const config = async () => (await front.fetch('/api/v1/config')).text()

test('a setting is changed at once, with its line, and taken back', async ({ page }) => {
  await open(page, front, 'settings')
  const setting = page.getByRole('list', { name: 'Settings' }).getByRole('listitem').filter({ hasText: 'log.level' })
  await expect(setting).toContainText('luanette.toml, line 3')
  await setting.getByRole('combobox').selectOption('warn')
  await expect.poll(config).toMatch(/level = .warn. +# file/)
  await look(page, 'settings-changed')
  await page.getByText('log.level is warn').getByRole('button', { name: 'Undo' }).click()
  await expect.poll(config).toMatch(/level = .info. +# file/)
})

test('a model is tried, stored, and answers without a restart', async ({ page }) => {
  await open(page, front, 'chat')
  const form = page.getByRole('form', { name: 'Model' })
  await form.getByLabel('Provider').selectOption('other')
  await form.getByLabel('Address').fill(`http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`)
  await form.getByLabel('Model').fill('small')
  await form.getByLabel('Key').fill('sk-wrong')
  await form.getByRole('button', { name: 'Test and save' }).click()
  await expect(form.getByRole('alert')).toBeVisible()
  await look(page, 'chat-setup')
  await form.getByLabel('Key').fill('sk-right')
  await form.getByRole('button', { name: 'Test and save' }).click()
  await expect(page.getByRole('button', { name: 'What can you do here?' })).toBeVisible()
  expect(await config()).not.toContain('sk-right')
  await page.getByLabel('Message', { exact: true }).fill('hello')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('log')).toContainText('ready')
  await page.getByRole('button', { name: 'Edit' }).click()
  await expect(page.getByLabel('Message', { exact: true })).toHaveValue('hello')
})

test('an example of the documentation is tried', async ({ page }) => {
  await open(page, front, 'docs/scripts')
  await page.getByRole('button', { name: 'Try it' }).first().click()
  await expect(page.getByRole('textbox', { name: 'script' })).toBeVisible()
  await expect(page).toHaveURL(/#\/playground/)
})

test('a set of tools is made by ticking, used at its address, removed and taken back', async ({ page }) => {
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
  await open(page, front, 'sets')
  await page.getByRole('button', { name: 'New set' }).click()
  const form = page.getByRole('form', { name: 'Set' })
  await form.getByLabel('Name, which is part of its address').fill('pictures')
  const sum = form.getByRole('status')
  await expect(sum).toHaveText('0 tools, clients see 0 tokens')
  const group = form.getByRole('group').filter({ hasText: 'all of gallery' })
  await form.getByText('gallery', { exact: true }).click()
  const one = group.getByRole('checkbox', { name: 'gallery.words' })
  await one.check()
  await expect(sum).toHaveText(/^1 tool, clients see [1-9]\d* tokens$/)
  const direct = await sum.textContent()
  await group.getByRole('checkbox', { name: 'all of gallery' }).check()
  await expect(one).toBeDisabled()
  await expect(sum).not.toHaveText(direct!)
  await group.getByRole('checkbox', { name: 'all of gallery' }).uncheck()
  await expect(sum).toHaveText(/^0 tools/)
  await one.check()
  await look(page, 'set-ticked')
  await form.getByRole('button', { name: 'Store' }).click()
  const set = page.getByRole('region', { name: 'set pictures' })
  await expect(set).toContainText(`${front.address}/mcp/sets/pictures`)
  await expect(set).toContainText('luanette install CLIENT --set pictures')
  await expect(set).toContainText(/clients see 1 in (\d+ tokens) · luanette.toml, line \d+/)
  expect(await set.textContent()).toContain(direct!.replace(/.* see /, '')) // what was shown while ticking is what clients are listed
  await look(page, 'set-stored')
  await expect.poll(() => listed('pictures')).toEqual(['gallery__words'])
  await set.getByRole('button', { name: 'Edit pictures' }).click()
  await form.getByLabel('What its clients are shown').selectOption('code')
  await expect(sum).not.toHaveText(direct!)
  await form.getByRole('button', { name: 'Store' }).click()
  await expect(set).toContainText('menu code')
  await page.getByText('the set pictures is stored').last().getByRole('button', { name: 'Undo' }).click()
  await expect(set).toContainText('menu direct')
  await set.getByRole('button', { name: 'Remove pictures' }).click()
  await expect(set).toHaveCount(0)
  await expect.poll(() => listed('pictures')).toBe(404)
  await page.getByText('pictures is removed').getByRole('button', { name: 'Undo' }).click()
  await expect(set).toBeVisible()
  await expect.poll(() => listed('pictures')).toEqual(['gallery__words'])
})

/** The tools that a client is listed at the address of a set; the status if that is not found. */
async function listed(set: string): Promise<string[] | number> {
  const revision = '2026-07-28'
  const answer = await front.fetch(`/mcp/sets/${set}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': revision, 'Mcp-Method': 'tools/list' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': revision, 'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} } } }),
  })
  const text = await answer.text()
  if (!answer.ok) return answer.status
  return (JSON.parse(text) as { result: { tools: { name: string }[] } }).result.tools.map((t) => t.name)
}
