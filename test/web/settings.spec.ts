// Settings that are changed on the page, and the model of the chat that is set up there.
import { expect, test } from '@playwright/test'
import { createServer, type Server as Listener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { failOnPageErrors, look, open } from './page'
import { Server } from './server'

let front: Server
let model: Listener
const keys: (string | undefined)[] = []

test.beforeAll(async () => {
  model = createServer((request, response) => {
    keys.push(request.headers.authorization)
    const known = request.headers.authorization === 'Bearer sk-right'
    response.writeHead(known ? 200 : 401, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(known ? { choices: [{ message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }], usage: { prompt_tokens: 3, completion_tokens: 1 } } : { error: { message: 'wrong key' } }))
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  front = new Server('# mine\n[log]\nlevel = "info" # for now\n')
  await front.start()
})

test.afterAll(async () => {
  await front?.remove()
  model?.close()
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
