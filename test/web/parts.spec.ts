// Tests of page modules that need no browser.
import { expect, test } from '@playwright/test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { linesOf as linesOfSession, shortText, wordsOf, type Session, type Step } from '../../internal/ui/web/src/activity/model'
import { ruleOf, scriptOf as scriptOfSession, tomlOf } from '../../internal/ui/web/src/activity/script'
import { Batcher } from '../../internal/ui/web/src/batch'
import { describe, latestLines } from '../../internal/ui/web/src/describe'
import { isNumeric, readTable, tableOf, textOf, typeName, viewOf } from '../../internal/ui/web/src/contents'
import { aboutOf, beginning, isInternal, nameOf, rowsOf } from '../../internal/ui/web/src/jobs/steps'
import { anchorOf, linked, part } from '../../internal/ui/web/src/manual'
import { inWords } from '../../internal/ui/web/src/cron'
import { deedOf, linesOf } from '../../internal/ui/web/src/deed'
import { duration, moment, until, when } from '../../internal/ui/web/src/format'
import { expand, variablesOf } from '../../internal/ui/web/src/uritemplate'

test('times are short when they are near, in every locale', () => {
  const noon = new Date(2026, 10, 5, 12, 3, 9)
  expect(when(noon, new Date(2026, 10, 5, 14))).toBe('12:03')
  expect(when(noon, new Date(2026, 10, 6))).toBe('5 Nov, 12:03')
  expect(when(noon, new Date(2027, 0, 6))).toBe('5 Nov 2026, 12:03')
  expect(moment(new Date(2026, 10, 5))).toBe('5 Nov 2026, 00:00:00')
  expect(until(new Date(2026, 10, 5, 14), noon.getTime())).toBe('in 1 h 56 min')
  expect(until(new Date(2026, 10, 12, 14), noon.getTime())).toBe('on 12 Nov, 14:00')
  expect([112_000, 151_000, 3_600_000, 60_840_000].map(duration)).toEqual(['1 min 52 s', '2 min 31 s', '1 h', '16 h 54 min'])
})

test('a content is shown by its type, its name, or what is in it', () => {
  expect([viewOf('text/markdown; charset=utf-8'), viewOf('text/plain', 'a.md'), viewOf('image/svg+xml'), viewOf('application/ld+json'), viewOf('audio/midi'), viewOf('application/octet-stream')]).toEqual(['markdown', 'markdown', 'image', 'json', 'midi', 'unknown'])
  expect([typeName('image/svg+xml'), typeName('audio/x-wav'), typeName('application/zip'), typeName('')]).toEqual(['SVG', 'WAV', 'ZIP', 'FILE'])
  expect(textOf(new TextEncoder().encode('größe'))).toBe('größe')
  expect(textOf(new TextEncoder().encode('größe').slice(0, 3))).toBe('gr') // cut in a letter
  expect(textOf(new Uint8Array([0, 1, 2, 3, 4, 5]))).toBeUndefined()
})

test('separated values and like objects become tables', () => {
  expect(readTable('a,b\r\n1,"x, ""y"""\n\n2,z')).toEqual([['a', 'b'], ['1', 'x, "y"'], ['2', 'z']])
  expect(readTable('a\tb\n1\t2\n3', true)).toEqual([['a', 'b'], ['1', '2']])
  expect(tableOf([{ id: 1, name: 'x' }, { id: 2, deep: [1], name: null }])).toEqual([['id', 'name', 'deep'], ['1', 'x', ''], ['2', '', '[1]']])
  expect(tableOf([{ a: 1 }, 2])).toBeUndefined()
  expect(tableOf([])).toBeUndefined()
  expect(isNumeric([['1,204.00', 'x'], ['', 'y']], 0)).toBe(true)
})

test('steps of a job show work apart from waits, and equal neighbours as one', () => {
  const step = (n: number, call: string, time: number, more: object = {}) => ({ step: n, effect: 'mcp.call', kind: 'write', call, time, done: true, ...more })
  const steps = [step(1, 'mcp.github.list_issues{page = 1}', 105), step(2, 'mcp.github.list_issues{page = 2}', 115), step(3, 'mcp.files.write_file{path = "notes/stale.md", content = "x"}', 227.009), step(4, 'fs.write("a", "b")', 230, { error: 'no' })]
  const waits = [{ from: 115, to: 227 }]
  const rows = rowsOf(steps, waits, 100)
  expect(rows.map((r) => [nameOf(r.call), r.times, Math.round(r.worked * 1000) / 1000, r.waited])).toEqual([['github.list_issues', 2, 15, 0], ['files.write_file', 1, 0.009, 112], ['fs.write', 1, 2.991, 0]])
  expect(rows[1].waits).toEqual([{ from: 15, to: 127 }])
  expect(aboutOf(steps[2].call)).toBe('notes/stale.md')
  expect(aboutOf('mcp.files.list_directory{["path"]="notes"}')).toBe('notes') // not the name of the argument
  expect(aboutOf('mcp.everything["get-sum"]{"a": 2, "b": 40}')).toBe('')
  expect(beginning(120, steps, waits)).toBe(105) // an attempt after the wait began anew
  expect(isInternal({ ...steps[0], kind: 'moment' })).toBe(true)
})

test('links of the documentation lead to its pages here, and a part ends at the next heading', () => {
  const text = '# Jobs\n\n![x](pictures/x.svg)\nSee [undo](#undo), [errors](errors/README.md#denied), [web](https://example.com/a.md).\n\n## Undo\n\n```sh\n# not a heading\n```\n### Deeper\nx\n\n## Next\ny'
  expect(linked(text, 'jobs')).toContain('See [undo](#/docs/jobs?at=undo), [errors](#/docs/errors/README?at=denied), [web](https://example.com/a.md).')
  expect(linked(text, 'jobs')).not.toContain('pictures')
  expect(linked('[up](../jobs.md)', 'errors/denied')).toBe('[up](#/docs/jobs)')
  expect(part(text, 'undo')).toMatch(/^## Undo[^]*not a heading[^]*Deeper\nx\n$/)
  expect(part(text, 'nothing')).toBe(text)
  expect(anchorOf('`cas.store(data, mime?)`')).toBe('casstoredata-mime')
})

test('no module of the page imports itself around a circle', () => {
  const root = resolve(import.meta.dirname, '../../internal/ui/web/src')
  const files = (readdirSync(root, { recursive: true }) as string[]).filter((f) => /\.tsx?$/.test(f))
  const imports = new Map(files.map((f) => [f, [...readFileSync(join(root, f), 'utf8').matchAll(/^(?:import|export) (?!type )[^'\n]*from '(\.[^']+)'/gm)]
    .map(([, to]) => join(dirname(f), to)).flatMap((to) => files.find((x) => x === `${to}.ts` || x === `${to}.tsx`) ?? [])]))
  const done = new Set<string>()
  const walk = (f: string, path: string[]): string[] | undefined => {
    if (path.includes(f)) return [...path.slice(path.indexOf(f)), f]
    if (done.has(f)) return undefined
    for (const to of imports.get(f)!) {
      const circle = walk(to, [...path, f])
      if (circle) return circle
    }
    done.add(f)
    return undefined
  }
  expect(files.length).toBeGreaterThan(100)
  for (const f of files) expect(walk(f, []), f).toBeUndefined()
})

test('a request for approval is said as a deed', () => {
  expect(deedOf('files.write_file', [{ action: 'files.write_file', arguments: { content: 'x', path: 'notes.txt' } }])).toBe('Write notes.txt')
  expect(deedOf('files.move_file', [{ arguments: { source: 'a', destination: 'b/a' } }])).toBe('Move file a to b/a')
  expect(deedOf('far.script_store', [{ arguments: { content: 'return 1' } }])).toBe('Script store return 1')
  expect(deedOf('github.deleteBranch', [])).toBe('Delete branch')
  expect(linesOf([{ diff: '--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z' }, {}])).toEqual({ added: 2, removed: 1 })
})

test('schedules are said in words', () => {
  expect(['0 7 * * 1-5', '30 9 * * *', '*/15 * * * *', '5 * * * *', '0 8 1 * *', '0 8 * * mon,3', '@every 1h30m', '@daily', '0 7 * 2 *', '0 7-9 * * *', 'nonsense'].map(inWords)).toEqual([
    'on weekdays at 07:00', 'every day at 09:30', 'every 15 minutes', 'every hour at 5 min past', 'on the 1st of each month at 08:00', 'on Mondays and Wednesdays at 08:00', 'every 1 h 30 min', 'every day at 00:00', undefined, undefined, undefined])
})

test('events are delivered in batches', () => {
  const scheduled: (() => void)[] = []
  const delivered: number[] = []
  const batcher = new Batcher<{ type: string }>((batch) => delivered.push(batch.length), (flush) => scheduled.push(flush), 2000)
  for (let i = 0; i < 1000; i++) batcher.add({ type: 'log.line' })
  expect(scheduled.length).toBe(1)
  scheduled.shift()!()
  expect(delivered).toEqual([1000])
  batcher.add({ type: 'log.line' }) // the next batch
  scheduled.shift()!()
  expect(delivered).toEqual([1000, 1])
})

test('the buffer is bounded, and keeps one event of each type', () => {
  let flush = () => {}
  const delivered: { batch: { type: string }[]; dropped: { type: string }[] }[] = []
  const batcher = new Batcher<{ type: string }>((batch, dropped) => delivered.push({ batch, dropped }), (go) => (flush = go), 100)
  batcher.add({ type: 'job.finished' })
  for (let i = 0; i < 100_000; i++) batcher.add({ type: 'log.line' })
  flush()
  expect(delivered[0].batch.length).toBeLessThan(201)
  expect(delivered[0].dropped.map((e) => e.type)).toContain('job.finished')
})

test('events become lines, repeating ones only once', () => {
  const e = (seq: number, type: string, data: Record<string, unknown>) => ({ seq, time: '2026-01-01T00:00:00Z', type, data })
  const all = [
    e(1, 'job.progress', { job_id: 'a', fraction: 0.1 }), e(2, 'job.progress', { job_id: 'b', fraction: 0.1, message: 'x' }), e(3, 'job.progress', { job_id: 'a', fraction: 0.255, message: 'on' }),
    e(4, 'tool.call_started', { namespace: 'far' }), e(5, 'tool.call_ended', { namespace: '', tool: 'job_list' }), e(6, 'tool.call_ended', { namespace: 'far', tool: 'look', error: 'no' }),
  ]
  expect(latestLines(all, 10).map((x) => x.seq)).toEqual([6, 3, 2])
  expect(latestLines(all, 1).map((x) => x.seq)).toEqual([6])
  expect(describe({ ...all[2], said: { kind: 'plain', text: 'job a: 26 % on' } })).toEqual({ kind: 'plain', text: 'job a: 26 % on', href: '#/jobs/a' })
  expect(describe({ ...all[5], said: { kind: 'bad', text: 'far.look: no' } })).toMatchObject({ kind: 'bad', text: 'far.look: no' })
  expect(describe(e(9, 'log.line', { level: 'INFO', message: 'hi', facts: { a: '1', trace_id: 'ff', span_id: 'aa' } }))).toEqual({ kind: 'plain', text: 'hi a=1', href: '#/traces/ff' })
  expect(describe(e(8, 'new.kind', { a: 1, b: { c: 2 } })).text).toBe('a=1 b={"c":2}')
})

test('calls of a session become lines: of a script below it, equal ones as one, and a decided request as waiting', () => {
  const step = (id: string, tool: string, at: number, more: object = {}): Step => ({ id, tool, at: new Date(at).toISOString(), decision: 'allow', size: 400, took_us: 1000, ...more })
  const lines = linesOfSession([
    step('a', 'execute_code', 0, { took_us: 90_000, args: { code: 'one\ntwo' } }),
    step('b', 'files.read', 10, { parent: 'a' }), step('c', 'files.read', 20, { parent: 'a' }), step('d', 'files.read', 30, { parent: 'a', error: 'upstream' }),
    step('e', 'files.write', 1000, { decision: 'ask', args: { path: 'x' } }), step('f', 'files.write', 61_000, { args: { path: 'x' } }),
  ])
  expect(lines.map((l) => [l.step.id, l.inner.map((i) => i.all.length), Math.round(l.waited / 1000)])).toEqual([['a', [2, 1], 0], ['f', [], 60]])
  expect(wordsOf(lines[0])).toEqual({ verb: 'Ran a script', about: 'JavaScript, 2 lines, 3 calls' })
  expect(shortText({ a: 1, b: 'two' })).toBe('a 1, b two')
})

test('a session becomes a script with its repeated constants as parameters, and a rule', () => {
  const session = { id: 's', who: 'k1', name: 'laptop', title: 'notes', began: new Date(0).toISOString() } as Session
  const step = (tool: string, args: object, more: object = {}): Step => ({ id: tool, tool, args, at: session.began, decision: 'allow', size: 1, took_us: 1, ...more })
  const script = scriptOfSession(session, [step('files.read', { path: 'a.txt' }), step('files.get-info', { path: 'a.txt', end: 'x' }), step('files.read', { path: 'gone' }, { error: 'upstream' })])
  expect(script).toContain('path = { type = "string", default = "a.txt" }')
  expect(script).toContain('local step1 = mcp.files.read{path = params.path}')
  expect(script).toContain('local step2 = mcp.files["get-info"]{path = params.path, ["end"] = "x"}')
  expect(script).not.toContain('gone')
  expect(tomlOf(ruleOf(session, step('files.read', {}), 'deny'))).toBe('[[policy]]\nkey = "laptop"\ntool = "files.read"\ndo = "deny"\n')
})

test('templates of URIs are filled in', () => {
  const values = { id: 7, path: 'a b/c', q: 'x&y', none: '' }
  expect(variablesOf('demo://{id}/{+path}{?q,none*}{&id}')).toEqual(['id', 'path', 'q', 'none'])
  expect(expand('demo://{id}/{path}', values)).toBe('demo://7/a%20b%2Fc')
  expect(expand('demo://{+path}{/id}{.id}{#q}', values)).toBe('demo://a%20b/c/7.7#x&y')
  expect(expand('demo://x{?q,none*}{&id}{;id:2}{missing}', values)).toBe('demo://x?q=x%26y&id=7;id=7')
})
