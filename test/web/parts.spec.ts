// Tests of page modules that need no browser.
import { expect, test } from '@playwright/test'
import { Batcher } from '../../internal/ui/web/src/batch'
import { describe, latestLines } from '../../internal/ui/web/src/describe'
import { isNumeric, readTable, tableOf, textOf, typeName, viewOf } from '../../internal/ui/web/src/contents'
import { duration, moment, until, when } from '../../internal/ui/web/src/format'

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
