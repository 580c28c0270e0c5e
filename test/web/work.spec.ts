// Tools, scripts, jobs and artifacts.
import { expect, test, type Response } from '@playwright/test'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { failOnPageErrors, findings, look, open, serverRow, shots, write } from './page'
import { Server } from './server'
import { midi, png, upstream, wav, type Upstream } from './upstream'

let front: Server
let gallery: Upstream
let vault: Upstream

test.beforeAll(async () => {
  gallery = await upstream()
  vault = await upstream('let-me-in')
  front = new Server(`[upstreams.gallery]\nurl = "${gallery.address}/mcp"\n[upstreams.vault]\nurl = "${vault.address}/mcp"\n[scripts]\ncode_timeout = "1m"\n[music]\nenabled = true\n`)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {}))).toContain('"state":"connected"')
})

test.afterAll(async () => {
  await front?.remove()
  gallery?.close()
  vault?.close()
})

failOnPageErrors(() => front)

test('the first paint is small', async ({ page }) => {
  const answers: Response[] = []
  page.on('response', (r) => {
    if (/\/$|\/assets\/|\.svg$/.test(new URL(r.url()).pathname)) answers.push(r)
  })
  await open(page, front, 'overview')
  await page.waitForLoadState('load')
  let compressed = 0
  for (const r of answers) {
    if (r.url().includes('/assets/')) expect(r.headers()['content-encoding'], r.url()).toBe('gzip')
    compressed += gzipSync(await r.body()).length
  }
  const seen = answers.map((r) => new URL(r.url()).pathname)
  expect(seen.some((p) => p.endsWith('.js'))).toBe(true)
  expect(seen.filter((p) => p.includes('editor'))).toEqual([])
  expect(compressed).toBeGreaterThan(10_000)
  expect(compressed).toBeLessThan(150_000)
})

test('log in to an upstream from the page', async ({ page, context }) => {
  await open(page, front, 'overview')
  const card = page.getByRole('article', { name: 'server vault' })
  await expect(card).toContainText('needs auth')
  await page.screenshot({ path: `${shots}/upstream-login.png`, fullPage: true })
  await card.getByRole('button', { name: 'Log in to vault' }).click()
  await expect(card).toContainText('look')
  const [other] = await Promise.all([context.waitForEvent('page'), card.getByRole('link', { name: 'Log in at' }).click()])
  await other.waitForURL(/oauth\/callback/)
  await expect(serverRow(page, 'vault').getByText('connected', { exact: true })).toBeVisible()
  await expect(card).toHaveCount(0)
})

test('results of tools are shown according to their type', async ({ page }) => {
  const result = page.getByRole('region', { name: 'Result' })
  const attempt = async (name: string) => {
    await open(page, front, `tools/gallery.${name}`)
    await page.getByRole('button', { name: 'Try it' }).click()
    await expect(result.getByRole('heading')).toBeVisible()
  }
  await attempt('words')
  await expect(result.locator('pre')).toHaveText('plain <b>words</b>')
  await attempt('tree')
  await expect(result.locator('details.json').first()).toContainText('b: [3]')
  await expect(result.getByRole('link', { name: 'artifact_0123456789ab' })).toHaveAttribute('href', '#/artifacts/artifact_0123456789ab')
  await attempt('picture')
  await expect.poll(() => result.locator('img').evaluate((i: HTMLImageElement) => i.naturalWidth)).toBe(1)
  await attempt('sound')
  await expect.poll(() => result.locator('audio').evaluate((a: HTMLAudioElement) => a.duration)).toBeCloseTo(0.1, 2)
  await attempt('tune')
  await expect(result.getByRole('img', { name: 'piano roll of 3 notes' })).toBeVisible()
  await page.screenshot({ path: `${shots}/tool-midi.png`, fullPage: true })
  await attempt('broken')
  await expect(result).toContainText('it did not work')
})

test('a form is generated from the schema, and copied as Lua, JavaScript and curl', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(page, front, 'tools/gallery.words')
  await page.getByLabel('size').fill('3')
  await page.getByLabel('loud').selectOption('true')
  await page.getByLabel('kind').selectOption('b')
  await page.getByLabel('more').fill('{"x": [1, null]}')
  const copied = async (button: string) => {
    const shown = page.evaluate(() => new Promise<void>((resolve) => { // in the page, since the text is shown only briefly
      const watcher = new MutationObserver(() => {
        if ([...document.querySelectorAll('button')].some((b) => b.textContent === 'Copied')) resolve()
      })
      watcher.observe(document, { subtree: true, childList: true, characterData: true })
    }))
    await page.getByRole('button', { name: button }).click()
    await shown
    await expect(page.getByRole('button', { name: 'Copied' })).toHaveCount(0)
    return page.evaluate(() => navigator.clipboard.readText())
  }
  const lua = await copied('Copy as Lua')
  expect(lua).toBe('return mcp.gallery.words{size = 3, loud = true, kind = "b", more = {x = {1, json.null}}}')
  expect((await front.call('lua_eval', { code: lua })).result).toBe('plain <b>words</b>')
  const script = await copied('Copy as JavaScript')
  expect((await front.call('execute_code', { code: script, language: 'javascript' })).result).toBe('plain <b>words</b>')
  const curl = await copied('Copy as curl')
  // Asynchronous: the upstream runs in this process.
  expect((await promisify(execFile)('sh', ['-c', `${curl} -s`])).stdout).toContain('plain <b>words</b>')
})

test('the playground completes modules, functions and tools, with their docs', async ({ page }) => {
  await open(page, front, 'playground')
  await write(page, 'mcp.gallery.pic')
  const offered = page.getByRole('option', { name: /picture/ })
  await expect(offered).toBeVisible()
  await expect(page.locator('.cm-completionInfo')).toContainText('Answers with picture.')
  await offered.click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('mcp.gallery.picture')
  await write(page, 'json.enc')
  await expect(page.getByRole('option', { name: /encode/ })).toBeVisible()
  await expect(page.locator('.cm-completionInfo')).not.toBeEmpty()
})

test('a run shows result, output, log, calls and trace, in both languages', async ({ page }) => {
  await open(page, front, 'playground')
  const outcome = page.getByRole('region', { name: 'Result of the run' })
  await write(page, 'print("printed") log.warn("logged") return {said = mcp.gallery.words{}}')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(outcome).toContainText('plain <b>words</b>')
  await expect(outcome).toContainText('printed')
  await expect(outcome).toContainText('logged')
  await expect(outcome.getByRole('table', { name: 'Calls' })).toContainText('gallery.words')
  await expect(outcome.locator('.waterfall')).toContainText('luanette.mcp.gallery.words')
  await page.screenshot({ path: `${shots}/playground-trace.png`, fullPage: true })
  await page.getByLabel('Language').selectOption('javascript')
  await page.getByLabel('keep variables').check()
  await write(page, 'globalThis.counter = 41; console.log("consoled"); return (await mcp.gallery.tree({})).a.b.length')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(outcome).toContainText('consoled')
  await expect(outcome).toContainText('3')
  await expect(page.getByRole('cell', { name: 'counter' })).toBeVisible()
  const ran = async () => {
    const { sessions } = (await (await front.fetch('/api/v1/activity?agent=luanette-hud')).json()) as { sessions: { id: string }[] }
    return sessions[0] ? (await front.fetch(`/api/v1/activity/${sessions[0].id}`)).text() : ''
  }
  await expect.poll(ran).toContain('console.log')
  expect(await ran(), 'how the page reads the variables is not what somebody ran').not.toContain('Object.fromEntries')
  await write(page, 'nothing.at.all')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(outcome.getByRole('region', { name: 'Error' })).toContainText('nothing')
})

test('scripts have a lineage, versions and differences', async ({ page }) => {
  const source = (word: string) => `function describe() return {name = "teller", description = "Tells."} end\nfunction main()\n  return "${word}"\nend`
  const first = String((await front.call('script_store', { content: source('one'), tags: ['family'] })).hash)
  const second = String((await front.call('script_store', { content: source('two'), parent: first })).hash)
  const third = String((await front.call('script_store', { content: source('three'), parent: second })).hash)
  const sibling = String((await front.call('script_store', { content: source('two, too').replace('teller', 'other'), parent: first })).hash)
  await front.call('script_publish', { script_hash: first })
  await open(page, front, `scripts/${second}`)
  const lineage = page.getByRole('group', { name: 'lineage' })
  await expect(lineage.getByRole('link')).toHaveCount(4)
  await expect(lineage.getByRole('link', { name: 'other' })).toHaveAttribute('href', `#/scripts/${sibling}`)
  await page.getByLabel('Compare with').selectOption({ label: `version 1, ${first.slice(0, 12)}` })
  await expect(page.locator('.diff .bad')).toContainText('return "one"')
  await expect(page.locator('.diff .good')).toContainText('return "two"')
  await page.getByRole('button', { name: 'Publish as a tool' }).click()
  await expect(page.getByText('teller is a tool now, version 2')).toBeVisible()
  await expect(page.getByRole('listitem').filter({ hasText: 'version 2' })).toContainText('current')
  await page.screenshot({ path: `${shots}/script-lineage.png`, fullPage: true })
  await lineage.getByRole('link', { name: third.slice(0, 6) }).click()
  await expect(page).toHaveURL(new RegExp(third))
  await expect(page.getByRole('heading', { level: 1, name: 'teller' })).toBeVisible()
  await open(page, front, 'scripts')
  await page.getByRole('button', { name: 'family' }).click()
  await expect(page.getByRole('table', { name: 'Scripts' }).getByRole('row')).toHaveCount(2) // with its head
})

test('a job is a waterfall, is replayed, and compared with another run', async ({ page }) => {
  const source = (word: string) => `function describe() return {name = "counted", description = "Counts.", params = {n = {type = "number"}}} end function main(p) progress(0.5, "half") print("${word} is " .. p.n) local said = mcp.gallery.words{size = p.n} return {n = p.n, said = said} end`
  const { hash } = await front.call('script_store', { content: source('n') })
  const { hash: newer } = await front.call('script_store', { content: source('number'), parent: hash })
  const ids: string[] = []
  for (const n of [1, 2]) ids.push(String((await front.call('lua_execute', { script_hash: hash, params: { n }, tags: [`only:${n}`] })).job_id))
  await front.call('job_poll', { job_ids: ids, mode: 'all', timeout_ms: 30000 })
  await open(page, front, `jobs/${ids[0]}`)
  const timeline = page.getByRole('region', { name: 'Timeline' })
  await expect(timeline.locator('.waterfall')).toContainText('gallery.words')
  await expect(timeline.locator('.waterfall .bar').first()).toBeVisible()
  await expect(timeline).not.toContainText('mcp.has')
  await timeline.getByRole('button', { name: /Show \d+ internal step/ }).click()
  await expect(timeline).toContainText('mcp.has')
  const replay = page.getByRole('region', { name: 'Replay' })
  await replay.getByRole('button', { name: 'Replay' }).click()
  await expect(replay.getByRole('status')).toContainText('Same result and output')
  await replay.getByLabel('with').selectOption(String(newer))
  await replay.getByRole('button', { name: 'Replay' }).click()
  await expect(replay.locator('.diff .bad').first()).toContainText('n is 1')
  await expect(replay.locator('.diff .good').first()).toContainText('number is 1')
  await page.screenshot({ path: `${shots}/job.png`, fullPage: true })
  await open(page, front, 'jobs?script=counted')
  for (const id of ids) await page.getByLabel(`compare ${id}`).check()
  await page.getByRole('link', { name: 'Compare both' }).click()
  await expect(page.locator('.diff')).toContainText('n is 1')
  await expect(page.locator('.diff')).toContainText('n is 2')
  await page.screenshot({ path: `${shots}/job-diff.png`, fullPage: true })
})

test('jobs are filtered by state, script, tag and time, in the address, and retried', async ({ page }) => {
  const start = async (name: string, body: string, tag: string) => {
    const { hash } = await front.call('script_store', { content: `function describe() return {name = "${name}", description = "${name}"} end\nfunction main(p)\n  ${body}\nend` })
    const { job_id: id } = await front.call('lua_execute', { script_hash: hash, params: { word: 'again' }, tags: [tag] })
    await front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 30000 })
    return String(id)
  }
  const good = await start('sorter', 'return p.word', 'team:a')
  const bad = await start('breaker', 'return p.none.field', 'team:b')
  const table = page.getByRole('table', { name: 'Jobs' })
  const link = (id: string) => table.locator(`a[href="#/jobs/${id}"]`)
  await open(page, front, 'jobs')
  await page.getByRole('group', { name: 'State' }).getByRole('button', { name: 'failed' }).click()
  await expect(link(good)).toHaveCount(0)
  await expect(link(bad)).toBeVisible()
  await expect(page).toHaveURL(/state=failed/)
  await page.getByRole('group', { name: 'State' }).getByRole('button', { name: 'all' }).click()
  await page.getByLabel('Script').selectOption('sorter')
  await expect(link(bad)).toHaveCount(0)
  await expect(link(good)).toBeVisible()
  await page.reload() // from the address
  await expect(link(good)).toBeVisible()
  await expect(link(bad)).toHaveCount(0)
  await open(page, front, 'jobs?time=1h')
  await table.getByRole('button', { name: 'team:b' }).click()
  await expect(page).toHaveURL(/tag=team%3Ab/)
  await expect(link(good)).toHaveCount(0)
  await link(bad).click()
  await expect(page.getByRole('region', { name: 'Error' })).toContainText('attempt to index a nil value')
  await page.getByRole('link', { name: 'Open line 3 in the playground' }).click()
  await expect(page.locator('.cm-faulty')).toContainText('return p.none.field')
  await open(page, front, `jobs/${good}`)
  await page.getByRole('button', { name: 'Run again' }).click()
  await expect(page).not.toHaveURL(new RegExp(good))
  await expect(page.getByRole('region', { name: 'Result' })).toContainText('again') // with the same parameters
})

test('a job shows what it waited for, stored and returned, and its change is undone by a plan', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: `function describe() return { name = "keeper", description = "Keeps." } end
function main()
  kv.set("word", "new")
  cas.store("# Kept", nil, "kept.md")
  return { { id = 1, name = "one" }, { id = 2, name = "two" } }
end` })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash, tags: ['a-tag-of-sixty-characters-that-once-made-the-whole-page-wider'] })
  await front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 30000 })
  await open(page, front, `jobs/${String(id)}`)
  await expect(page.getByRole('heading', { level: 1, name: 'keeper' })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Result' }).getByRole('cell', { name: 'two' })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Stored' }).locator('.glimpse h1')).toHaveText('Kept')
  await expect(page.getByRole('region', { name: 'Timeline' })).toContainText('kv.set')
  const undo = page.getByRole('region', { name: 'Undo' })
  await undo.getByRole('button', { name: 'Undo…' }).click()
  await expect(undo).toContainText(/kv\.set|changed nothing/)
  await look(page, 'job-undo')
  await open(page, front, 'jobs')
  await look(page, 'jobs')
})

test('the output of a job is shown while it runs, and cancelling asks first', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() for i = 1, 100000 do print("line " .. i) clock.sleep(200) end end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await open(page, front, `jobs/${String(id)}`)
  const output = page.getByRole('region', { name: 'Output', exact: true })
  await expect(output).toContainText('line 1')
  await expect(output).toContainText('line 7') // while it runs
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Back' }).click()
  await expect(page.getByText('running', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click()
  await expect(page.getByText('cancelled', { exact: true })).toBeVisible()
})

test('an error is marked at its line, in Lua, JavaScript and TypeScript, and the plan is beside the code', async ({ page }) => {
  await open(page, front, 'playground')
  const marked = async (language: string, code: string, line: string, message: string, button = 'Run') => {
    await page.getByLabel('Language').selectOption(language)
    await write(page, code)
    await page.getByRole('button', { name: button, exact: true }).click()
    await expect(page.locator('.cm-faulty')).toHaveText(line)
    await expect(page.locator('.cm-fault')).toContainText(message)
  }
  await marked('lua', 'local x = nil\nprint("before")\nreturn x.field', 'return x.field', 'attempt to index a nil value')
  await expect(page.getByRole('region', { name: 'Output' }).last()).toContainText('before') // of the failed run
  await marked('lua', 'local x = 1\nlocal = 2', 'local = 2', 'near')
  await marked('lua', 'fs.write("a", "b")\nerror("later")', 'error("later")', 'later', 'Preview')
  await expect(page.getByRole('region', { name: 'Plan' })).toContainText('write "a"')
  await marked('javascript', 'const a = 1\nreturn a.b.c', 'return a.b.c', 'cannot read property')
  await marked('typescript', 'interface Point { x: number }\nconst p: Point | undefined = undefined\nreturn (p as any).x', 'return (p as any).x', 'cannot read property')
  await page.screenshot({ path: `${shots}/playground-error.png`, fullPage: true })
  await write(page, 'const n: number = 40\nreturn { n: n + 2 }')
  await expect(page.locator('.cm-faulty')).toHaveCount(0)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(page.getByRole('region', { name: 'Result of the run' })).toContainText('n: 42')
})

test('arguments of tools and fields of their results are completed', async ({ page }) => {
  await open(page, front, 'playground')
  await page.getByLabel('Language').selectOption('typescript')
  await write(page, 'await mcp.gallery.words({ ')
  await page.keyboard.press('Control+Space')
  await page.getByRole('option', { name: /^loud/ }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('loud: ')
  await front.call('call_tool', { name: 'gallery.tree', arguments: {} }) // it has no schema: its fields are learned
  await write(page, 'const found = await mcp.gallery.tree({})\nfound.')
  await page.keyboard.press('Control+Space')
  await expect(page.getByRole('option', { name: /^made/ })).toBeVisible()
})

test('versions of the script are compared with the editor and loaded into it', async ({ page }) => {
  const text = (word: string) => `function describe() return {name = "versed", description = "${word}"} end\nfunction main() return "${word}" end`
  await open(page, front, 'playground')
  for (const word of ['first', 'second']) {
    await write(page, text(word))
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await expect(page.getByText(new RegExp(`versed is a tool now, version ${word === 'first' ? 1 : 2}`))).toBeVisible()
  }
  const versions = page.getByRole('region', { name: 'Versions' })
  await versions.getByLabel('Compare with').selectOption({ label: 'version 1' })
  await expect(versions.locator('.diff .bad').first()).toContainText('first')
  await expect(versions.locator('.diff .good').first()).toContainText('second')
  await versions.getByRole('button', { name: 'Load into the editor' }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('return "first"')
  await expect(versions).toContainText('No difference')
})

async function store(content: Buffer, type: string): Promise<string> {
  const answer = await front.fetch('/cas', { method: 'POST', headers: { 'Content-Type': type }, body: content })
  return ((await answer.json()) as { hash: string }).hash
}

async function create(hash: string, more: object): Promise<string> {
  return String((await front.call('call_tool', { name: 'hootenanny.artifact_create', arguments: { cas_hash: hash, ...more } })).artifact_id)
}

test('artifacts are found, previewed and linked to their relatives', async ({ page }) => {
  await open(page, front, 'artifacts')
  const tune = await create(await store(midi(), 'audio/midi'), { name: 'three notes', tags: ['mood:plain'], creator: 'ada', variation_set_id: 'pair' })
  await expect(page.getByRole('article', { name: 'artifact three notes' })).toBeVisible() // without a reload
  const sound = await create(await store(wav(), 'audio/wav'), { name: 'silence', creator: 'ada', parent_id: tune, variation_set_id: 'pair' })
  await create(await store(Buffer.from(png, 'base64'), 'image/png'), { name: 'dot', creator: 'bob', parent_id: sound })
  await create(await store(Buffer.from('{"deep": {"er": 1}}'), 'application/json'), { name: 'numbers', creator: 'bob' })
  await create(await store(Buffer.from('<script>document.title="owned"</script>'), 'text/html'), { name: '<b>markup</b>', creator: 'eve' })

  await page.getByLabel('Creator').fill('ada')
  await expect(page.getByRole('article')).toHaveCount(2)
  await page.getByRole('button', { name: 'MIDI', exact: true }).click()
  await expect(page.getByRole('article')).toHaveCount(1)
  await page.getByRole('button', { name: 'All', exact: true }).click()
  await page.getByLabel('Creator').fill('')
  await page.getByRole('button', { name: 'mood:plain' }).click()
  await expect(page.getByRole('article')).toHaveCount(1)
  await page.screenshot({ path: `${shots}/artifacts.png`, fullPage: true })
  await page.getByRole('link', { name: 'three notes' }).click()
  await expect(page.getByRole('region', { name: 'Content' }).getByRole('img', { name: 'piano roll of 3 notes' })).toBeVisible()
  await expect(page.getByRole('link', { name: 'Download' })).toHaveAttribute('download', 'three_notes.mid')
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()])
  expect(file.suggestedFilename()).toBe('three_notes.mid')
  const lineage = page.getByRole('group', { name: 'lineage' })
  await expect(lineage.getByRole('link')).toHaveCount(3)
  await expect(page.locator('.variations > li')).toHaveCount(2)
  await page.screenshot({ path: `${shots}/artifact.png`, fullPage: true })
  await lineage.getByRole('link', { name: 'silence' }).click()
  const content = page.getByRole('region', { name: 'Content' })
  await expect.poll(() => content.locator('audio').evaluate((a: HTMLAudioElement) => a.duration)).toBeCloseTo(0.1, 2)
  await lineage.getByRole('link', { name: 'dot' }).click()
  await expect.poll(() => content.locator('img').evaluate((i: HTMLImageElement) => i.naturalWidth)).toBe(1)
  await page.getByRole('link', { name: 'Results' }).click()
  await page.getByRole('link', { name: 'numbers' }).click()
  await expect(content).toContainText('er: 1')
  await page.getByRole('link', { name: 'Results' }).click()
  await page.getByRole('link', { name: '<b>markup</b>' }).click()
  await expect(content).toContainText('document.title="owned"')
  expect(await page.title()).not.toBe('owned')
  await open(page, front, 'artifacts/artifact_000000000000')
  await expect(page.locator('.bad')).toBeVisible()
})

test('what a script stores is shown as what it is, with its run', async ({ page }) => {
  const content = `function describe() return { name = "reporter", description = "Reports." } end
function main()
  cas.store("# The report\\n\\nAll is *well*.", nil, "report.md")
  cas.store('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="9" height="9" fill="red"/></svg>', nil, "chart.svg")
  cas.store('[{"id": 212, "days": 94}, {"id": 340, "days": 61}]', "application/json", "stale.json")
  cas.store("invoice,amount\\n4708,12.5\\n", nil, "invoices.csv")
  cas.store("no type, but text")
end`
  const { hash } = await front.call('script_store', { content })
  await open(page, front, 'library?creator=reporter')
  await expect(page.getByText('Nothing matches.')).toBeVisible()
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 30000 })
  const card = (name: string) => page.getByRole('article', { name: `artifact ${name}` })
  await expect(page.getByRole('article')).toHaveCount(5) // without a reload
  await expect(card('report.md').locator('.glimpse em')).toHaveText('well')
  await expect(card('invoices.csv').locator('.glimpse td').first()).toHaveText('4708')
  await expect(card('stale.json').locator('.glimpse th').first()).toHaveText('id')
  await expect(card('Bytes of reporter').locator('.glimpse')).toContainText('no type, but text')
  await expect.poll(() => card('chart.svg').locator('img').evaluate((i: HTMLImageElement) => i.naturalWidth)).toBe(20)
  await expect(card('report.md').getByRole('link', { name: 'run' })).toHaveAttribute('href', `#/jobs/${String(id)}`)
  await look(page, 'results')
  await page.getByRole('link', { name: 'stale.json' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'stale.json' })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Content' }).getByRole('cell', { name: '340' })).toBeVisible()
  await open(page, front, `scripts/${String(hash)}`)
  await expect(page.getByRole('region', { name: 'Source' }).locator('.tok-keyword').first()).toHaveText('function')
  await expect(page.getByRole('region', { name: 'Runs' }).getByRole('link', { name: /^done/ })).toHaveAttribute('href', `#/jobs/${String(id)}`)
  await look(page, 'script')
})

test('everything stored is one list with kinds; tunes are played, sounds have a waveform, and what is deleted comes back', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function describe() return {name = "waver", description = "Waves."} end function main() return "wave" end' })
  await front.call('script_publish', { script_hash: hash })
  await front.call('waver', {}).catch(() => front.call('call_tool', { name: 'waver', arguments: {} }))
  await create(await store(Buffer.from('X:1\nT:Scale\nL:1/4\nQ:1/4=240\nK:C\nCDEF GABc|\n'), 'text/vnd.abc'), { name: 'scale', creator: 'abe' })
  await create(await store(Buffer.concat([wav(), Buffer.alloc(2)]), 'audio/wav'), { name: 'quiet', creator: 'abe' }) // a content of its own
  await open(page, front, 'scripts?kind=tool')
  const waver = page.getByRole('table', { name: 'Scripts' }).getByRole('row').filter({ hasText: 'waver' })
  await expect(waver).toContainText('version 1')
  await waver.getByRole('link', { name: 'waver' }).click()
  await expect(page.getByRole('list', { name: 'Callers' })).toContainText('1 call')
  await expect(page.getByRole('button', { name: 'Delete' })).toHaveCount(0) // a tool's script stays
  await page.getByRole('button', { name: 'Unpublish' }).click()
  await expect(page.getByRole('button', { name: 'Publish as a tool' })).toBeVisible()
  await page.getByRole('button', { name: 'Delete' }).click()
  await expect(page).toHaveURL(/#\/scripts$/)
  await expect(waver).toHaveCount(0)
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect(waver).toBeVisible()

  await open(page, front, 'artifacts?kind=abc')
  await page.getByRole('link', { name: 'scale' }).click()
  const content = page.getByRole('region', { name: 'Content' })
  await expect(content.getByRole('img', { name: 'piano roll of 8 notes' })).toBeVisible()
  await expect(content).toContainText('CDEF GABc|')
  await content.getByRole('button', { name: 'Play' }).click()
  await expect(content.getByRole('button', { name: 'Stop' })).toBeVisible()
  await page.screenshot({ path: `${shots}/artifact-abc.png`, fullPage: true })
  await expect(content.getByRole('button', { name: 'Play' })).toBeVisible() // it ends by itself
  await open(page, front, 'artifacts?creator=abe&kind=audio')
  await page.getByRole('link', { name: 'quiet' }).click()
  await expect(content.getByRole('img', { name: 'waveform of quiet' })).toBeVisible()
  expect(await findings(page)).toEqual([])
})

test('a job links to the artifact it created', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function main() return mcp.hootenanny.abc_to_midi{abc = "X:1\\nT:Scale\\nK:C\\nCDEF GABc|\\n"} end' })
  const { job_id: id } = await front.call('lua_execute', { script_hash: hash })
  await front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 30000 })
  await open(page, front, `jobs/${String(id)}`)
  await page.getByRole('link', { name: /artifact_/ }).first().click()
  await expect(page.getByRole('img', { name: 'piano roll of 8 notes' })).toBeVisible()
})

test('save, publish and save again works, and going back to an earlier text', async ({ page }) => {
  await open(page, front, 'playground')
  const text = (word: string) => `function describe() return {name = "saver", description = "Says ${word}."} end function main() return "${word}" end`
  const press = async (button: string, notice: RegExp) => {
    await page.getByRole('button', { name: button, exact: true }).click()
    await expect(page.getByText(notice).last()).toBeVisible()
  }
  await write(page, text('one'))
  await press('Save', /saved as/)
  await press('Publish', /saver is a tool now, version 1/)
  await press('Save', /saved as/)
  await write(page, text('two'))
  await press('Publish', /saver is a tool now, version 2/)
  await write(page, text('one'))
  await press('Publish', /saver is a tool now, version 3/)
  await expect(page.locator('.notices .bad')).toHaveCount(0)
})

test('a draft survives a reload, and main gets the parameters of the form', async ({ page }) => {
  await open(page, front, 'playground')
  await write(page, 'function describe() return {name = "adder", params = {by = {type = "integer", required = true, description = "how much"}}} end function main(p) return {sum = 40 + p.by} end')
  const form = page.getByRole('region', { name: 'Parameters' })
  await expect(form.getByLabel('by')).toBeVisible()
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(form.getByRole('alert')).toHaveText('This field is required.')
  await expect(form.getByLabel('by')).toBeFocused()
  await form.getByLabel('by').fill('2')
  await expect(form.getByRole('alert')).toHaveCount(0)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await expect(page.getByRole('region', { name: 'Result of the run' })).toContainText('42')
  await page.reload()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('name = "adder"')
  await form.getByLabel('by').fill('3')
  await page.screenshot({ path: `${shots}/playground-form.png`, fullPage: true })
  await page.getByRole('button', { name: 'Run as job' }).click()
  await expect(page.getByText('sum: 43')).toBeVisible()
  await open(page, front, 'playground')
  await page.getByRole('button', { name: 'Discard draft' }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('Press Ctrl+Enter')
  await page.getByText('draft discarded').getByRole('button', { name: 'Undo' }).click()
  await expect(page.getByRole('textbox', { name: 'script' })).toContainText('name = "adder"')
})

test('a stored script is started with a form, and on a schedule that can be paused', async ({ page }) => {
  const { hash } = await front.call('script_store', { content: 'function describe() return {name = "waiter", description = "Serves.", params = {dish = {type = "string", required = true}}} end function main(p) return "one " .. p.dish end' })
  await open(page, front, `scripts/${String(hash)}`)
  const form = page.getByRole('form', { name: 'Start as a job' })
  await form.getByRole('button', { name: 'Start' }).click()
  await expect(form.getByRole('alert')).toHaveText('This field is required.')
  await form.getByLabel('dish').fill('soup')
  await form.getByRole('button', { name: 'Start' }).click()
  await expect(page.getByText('one soup')).toBeVisible()
  await front.call('lua_execute', { script_hash: hash, params: { dish: 'tea' }, schedule: '@daily' })
  await open(page, front, 'jobs?find=waiter')
  const row = page.getByRole('table', { name: 'Schedules' }).getByRole('row').filter({ hasText: 'waiter' })
  await row.getByRole('button', { name: 'Pause' }).click()
  await expect(row).toContainText('paused')
  await row.getByRole('button', { name: 'Remove' }).click()
  await expect(row).toHaveCount(0)
  await page.getByText('was removed').getByRole('button', { name: 'Undo' }).click()
  await expect(row).toContainText('paused') // as it was
})

test('traces show the work of users, and are filtered by the address', async ({ page }) => {
  await front.call('call_tool', { name: 'gallery.words', arguments: {} })
  await open(page, front, 'traces?find=gallery.words')
  await expect(page.getByRole('row').filter({ hasText: 'gallery.words' }).first()).toBeVisible()
  await page.getByLabel('Status').selectOption('failed')
  await expect(page).toHaveURL(/status=failed/)
  await expect(page.getByRole('row').filter({ hasText: 'gallery.words' })).toHaveCount(0)
})

test('two traces are compared side by side', async ({ page }) => {
  for (const code of ['return 1', 'error("no")']) await front.call('lua_eval', { code }).catch(() => {})
  await open(page, front, 'traces?find=lua_eval')
  const boxes = page.getByRole('table', { name: 'Traces' }).getByRole('checkbox')
  await expect(boxes.nth(1)).toBeVisible()
  await boxes.nth(1).check()
  await boxes.nth(0).check()
  await page.getByRole('link', { name: 'Compare both' }).click()
  const both = page.getByRole('table', { name: 'Spans of both' })
  await expect(both.locator('tr.differs').first()).toContainText('fails')
  await expect(both).toContainText('return 1 → error("no")')
  await page.screenshot({ path: `${shots}/trace-diff.png`, fullPage: true })
})
