// Tests of page modules that need no browser.
import { expect, test } from '@playwright/test'
import { Batcher } from '../../internal/ui/web/src/batch'
import { describe, latestLines } from '../../internal/ui/web/src/describe'
import { moment, when } from '../../internal/ui/web/src/format'

test('times are written as commands print them, in every locale', () => {
  const noon = new Date(2026, 10, 5, 12, 3, 9)
  expect(moment(new Date(2026, 10, 5))).toBe('2026-11-05 00:00:00')
  expect(when(noon, new Date(2026, 10, 5, 14))).toBe('12:03:09')
  expect(when(noon, new Date(2026, 10, 6))).toBe('2026-11-05 12:03:09')
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
