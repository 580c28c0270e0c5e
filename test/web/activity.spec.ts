// The page Activity: what a client does is there at once, and read as a transcript.
import { expect, test } from '@playwright/test'
import { failOnPageErrors, look, open } from './page'
import { Server } from './server'
import { upstream, type Upstream } from './upstream'

let front: Server
let gallery: Upstream

test.beforeAll(async () => {
  gallery = await upstream()
  front = new Server(`[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n[[policy]]\ntool = "gallery.broken"\ndo = "deny"\nreason = "it breaks things"\n[approvals]\n"gallery.tree" = "writes"\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
})

test.afterAll(async () => {
  await front?.remove()
  gallery?.close()
})

failOnPageErrors(() => front)

/** A client with a session of its own, as agents are. */
async function client(name: string): Promise<(tool: string, args: unknown) => Promise<string>> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${front.key}` }
  let id = 0
  const send = async (method: string, params: unknown) => {
    const answer = await fetch(`${front.address}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }) })
    headers['Mcp-Session-Id'] ??= answer.headers.get('Mcp-Session-Id') ?? ''
    return answer.text()
  }
  await send('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version: '2.1.4' } })
  headers['MCP-Protocol-Version'] = '2025-06-18'
  return (tool, args) => send('tools/call', { name: tool, arguments: args })
}

test('what a client does is there at once, and counts as elsewhere', async ({ page }) => {
  await open(page, front, 'activity')
  const call = await client('claude-code')
  await call('search_tools', { query: 'a picture for the gallery' })
  await call('call_tool', { name: 'gallery.words', arguments: {} })
  await call('execute_code', { language: 'lua', code: 'for i = 1, 3 do\n  mcp.gallery.words{}\nend\nreturn "seen"' })
  await call('call_tool', { name: 'gallery.broken', arguments: {} })

  const session = page.getByRole('navigation', { name: 'Sessions' }).getByRole('link', { name: /a picture for the gallery/ })
  await expect(session).toBeVisible()
  await expect(session).toContainText('claude-code')
  await expect(session).toContainText('1 denied')
  await session.click()
  const transcript = page.getByRole('article', { name: 'Session' })
  const entries = transcript.locator('ol.entries > li')
  await expect(entries).toHaveCount(4)
  await expect(entries.nth(0)).toContainText('Searched “a picture for the gallery”')
  await expect(entries.nth(1)).toContainText('Called gallery.words')
  await expect(entries.nth(2)).toContainText('Ran a script Lua, 4 lines, 3 calls')
  await expect(entries.nth(2)).toContainText('gallery.words×3')
  await expect(entries.nth(3)).toContainText('and was denied')
  await expect(entries.nth(3)).toContainText('it breaks things')

  const counted = (await (await front.fetch('/api/v1/calls?span=1h')).json()) as { total: { calls: number; errors: number } }
  await expect(transcript.locator('.figures')).toContainText(`Calls${counted.total.calls}`)
  await expect(transcript.locator('.figures')).toContainText(`Failed${counted.total.errors} 1 denied`)
  await expect(transcript.getByRole('region', { name: 'Tokens' })).toContainText('kept out of the context')

  // A later call is appended while somebody reads.
  await call('call_tool', { name: 'gallery.words', arguments: {} })
  await expect(entries).toHaveCount(5)
  await look(page, 'activity')
})

test('a step has its details, a link of its own, a rule and a script', async ({ page }) => {
  await open(page, front, 'activity?outcome=denied')
  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link', { name: /a picture/ }).click()
  expect(page.url()).toContain('outcome=denied')
  const denied = page.locator('ol.entries > li').nth(3)
  await denied.locator('.what').click()
  await denied.getByRole('button', { name: 'Never allow…' }).click()
  await expect(page.getByRole('dialog')).toContainText('tool = "gallery.broken"')
  await expect(page.getByRole('dialog')).toContainText('it would have decided 1 call')
  await look(page, 'activity-rule')
  await page.getByRole('dialog').getByRole('button', { name: 'Never allow', exact: true }).click()
  const rules = async () => (await (await front.fetch('/api/v1/config')).text()).match(/tool = .gallery.broken./g)?.length
  await expect.poll(rules).toBe(2) // before the one that denies it already
  await page.getByText('gallery.broken is never allowed').getByRole('button', { name: 'Undo' }).click()
  await expect.poll(rules).toBe(1)
  await denied.getByRole('button', { name: 'Always ask…' }).click()
  await expect(page.getByRole('dialog')).toContainText('do = "approve"')
  await page.getByRole('dialog').getByRole('button', { name: 'Always ask', exact: true }).click()
  await expect.poll(rules).toBe(2)
  await page.getByText('gallery.broken always asks').getByRole('button', { name: 'Undo' }).click()
  await expect.poll(rules).toBe(1)

  const { sessions } = (await (await front.fetch('/api/v1/activity?outcome=denied')).json()) as { sessions: { id: string }[] }
  const { steps } = (await (await front.fetch(`/api/v1/activity/${sessions[0].id}`)).json()) as { steps: { id: string; tool: string }[] }
  await open(page, front, `activity/${sessions[0].id}/${steps.find((s) => s.tool === 'execute_code')!.id}`)
  await expect(page.locator('.entry.chosen .source')).toContainText('mcp.gallery.words{}')
  await look(page, 'activity-open')

  await page.getByRole('button', { name: 'Make this a script' }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('local step1 = mcp.gallery.words{}')
})

test('filters that match nothing say so', async ({ page }) => {
  await open(page, front, 'activity?find=nothing-like-this')
  await expect(page.getByText('No session matches.')).toBeVisible()
  await page.getByRole('link', { name: 'Clear filters' }).click()
  await expect(page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first()).toBeVisible()
})

test('a call that waits is decided where it was made, and a job shows what it did', async ({ page }) => {
  const call = await client('codex')
  await call('search_tools', { query: 'a tree to decide about' })
  expect(await call('call_tool', { name: 'gallery.tree', arguments: {} })).toContain('pending_approval')
  await open(page, front, 'activity')
  await page.getByRole('link', { name: /a tree to decide about/ }).click()
  const entries = page.getByRole('article', { name: 'Session' }).locator('ol.entries > li')
  await expect(entries.nth(1)).toContainText('Asks to call gallery.tree and waits for you')
  await look(page, 'activity-decide')
  await entries.nth(1).getByRole('button', { name: 'Allow a' }).click()
  await expect(entries.nth(1)).toContainText('Called gallery.tree')
  await expect(entries.nth(1)).toContainText('wait')

  // What a script does after the decision is part of it, whoever decided.
  await call('execute_code', { language: 'lua', code: 'mcp.gallery.tree{}\nreturn mcp.gallery.words{}' })
  await expect(entries.nth(2)).toContainText('and waits for you')
  await entries.nth(2).getByRole('button', { name: 'Allow a' }).click()
  await expect(entries.nth(2).locator('.inner')).toContainText('gallery.tree')
  await expect(entries.nth(2).locator('.inner')).toContainText('gallery.words')

  const { hash } = await front.call('script_store', { content: 'function main() return mcp.gallery.words{} end' })
  await call('lua_execute', { script_hash: hash })
  await expect(entries.nth(3)).toContainText('Started a job')
  await entries.nth(3).locator('.what').click()
  await expect(entries.nth(3).locator('.inner')).toContainText('gallery.words')
})
