// Parts of the page that need no browser.
import { expect, test } from '@playwright/test'
import { Gatherer } from '../../internal/ui/web/src/gather'
import { inWords, worthALine } from '../../internal/ui/web/src/words'

test('what comes together is handed on together', () => {
  const turns: (() => void)[] = []
  const handed: number[] = []
  const gatherer = new Gatherer<{ type: string }>((batch) => handed.push(batch.length), (go) => turns.push(go), 2000)
  for (let i = 0; i < 1000; i++) gatherer.add({ type: 'log.line' })
  expect(turns.length).toBe(1)
  turns.shift()!()
  expect(handed).toEqual([1000])
  gatherer.add({ type: 'log.line' }) // and begins anew
  turns.shift()!()
  expect(handed).toEqual([1000, 1])
})

test('while nobody looks nothing piles up, and no type is forgotten', () => {
  let turn = () => {}
  const handed: { batch: { type: string }[]; spilled: { type: string }[] }[] = []
  const gatherer = new Gatherer<{ type: string }>((batch, spilled) => handed.push({ batch, spilled }), (go) => (turn = go), 100)
  gatherer.add({ type: 'job.finished' })
  for (let i = 0; i < 100_000; i++) gatherer.add({ type: 'log.line' })
  turn()
  expect(handed[0].batch.length).toBeLessThan(201)
  expect(handed[0].spilled.map((e) => e.type)).toContain('job.finished')
})

test('events are told in words, the repeating ones once', () => {
  const e = (seq: number, type: string, data: Record<string, unknown>) => ({ seq, time: '2026-01-01T00:00:00Z', type, data })
  const all = [
    e(1, 'job.progress', { job_id: 'a', fraction: 0.1 }), e(2, 'job.progress', { job_id: 'b', fraction: 0.1, message: 'x' }), e(3, 'job.progress', { job_id: 'a', fraction: 0.255, message: 'on' }),
    e(4, 'tool.call_started', { namespace: 'far' }), e(5, 'tool.call_ended', { namespace: '', tool: 'job_list' }), e(6, 'tool.call_ended', { namespace: 'far', tool: 'look', error: 'no' }),
  ]
  expect(worthALine(all, 10).map((x) => x.seq)).toEqual([6, 3, 2])
  expect(worthALine(all, 1).map((x) => x.seq)).toEqual([6])
  expect(inWords({ ...all[2], said: { kind: 'plain', text: 'job a: 26 % on' } })).toEqual({ kind: 'plain', text: 'job a: 26 % on', href: '#/jobs/a' })
  expect(inWords({ ...all[5], said: { kind: 'bad', text: 'far.look: no' } })).toMatchObject({ kind: 'bad', text: 'far.look: no' })
  expect(inWords(e(9, 'log.line', { level: 'INFO', message: 'hi', facts: { a: '1', trace_id: 'ff', span_id: 'aa' } }))).toEqual({ kind: 'plain', text: 'hi a=1', href: '#/traces/ff' })
  expect(inWords(e(8, 'new.kind', { a: 1, b: { c: 2 } })).text).toBe('a=1 b={"c":2}')
})
