// Prompts and resources of a real server, found and tried on the page.
import { expect, test } from '@playwright/test'
import { join, resolve } from 'node:path'
import { failOnPageErrors, look, open } from './page'
import { Server } from './server'

const programs = join(process.env.LUANETTE_TEST_SERVERS ?? resolve('../servers/node_modules'), '.bin')

let front: Server

test.beforeAll(async () => {
  front = new Server(() => `[upstreams.everything]\ncommand = "${programs}/mcp-server-everything"\nargs = ["stdio"]\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
})

test.afterAll(() => front?.remove())

failOnPageErrors(() => front)

test('a prompt is found, filled in and got', async ({ page }) => {
  await open(page, front, 'tools')
  await page.getByRole('link', { name: 'Prompts and resources' }).click()
  await expect(page.getByRole('table', { name: 'Resources' })).toContainText('lua://')
  await page.getByRole('searchbox', { name: 'Search prompts and resources' }).fill('args-prompt')
  await expect(page.getByRole('status').filter({ hasText: '1 prompt, 0 resources' })).toBeVisible()
  await page.getByRole('link', { name: /args-prompt/ }).click()
  await page.getByRole('button', { name: 'Get' }).click()
  await expect(page.getByText('This field is required.')).toBeVisible()
  await page.getByLabel(/^city/).fill('Graz')
  await page.getByRole('button', { name: 'Get' }).click()
  await expect(page.getByRole('region', { name: 'message of user' })).toContainText('Graz')
  await look(page, 'prompt')
})

test('a resource is read, and one of a template', async ({ page }) => {
  await open(page, front, 'prompts?find=demo://resource')
  await page.getByRole('table', { name: 'Templates' }).getByRole('link', { name: /dynamic\/text/ }).click()
  await page.getByRole('textbox').fill('7')
  await page.getByRole('button', { name: 'Read' }).click()
  await expect(page.getByRole('region', { name: /^contents of/ })).toContainText('7')

  await page.getByRole('link', { name: 'Prompts and resources' }).click()
  await page.getByRole('table', { name: 'Resources' }).getByRole('link', { name: /static/ }).first().click()
  await page.getByRole('button', { name: 'Read' }).click()
  await expect(page.getByRole('region', { name: /^contents of demo:/ })).toBeVisible()
})

test('what cannot be read says so', async ({ page }) => {
  await open(page, front, `prompts/resource/${encodeURIComponent('demo://nothing/here')}`)
  await page.getByRole('button', { name: 'Read' }).click()
  await expect(page.getByRole('alert')).toBeVisible()
})
