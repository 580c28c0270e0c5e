// Two runs side by side, with what differs marked.
import { when } from '../format'
import { call } from '../mcp'
import { Diff } from '../parts/diff'
import { State } from '../parts/state'
import { useData } from '../resource'
import { journalOf, logsOf, titleOf, took, type Job } from './job'
import { Skeleton } from '../parts/skeleton'

/** Compares the parameters, effects, output and result of two runs. */
export function Compare({ one, other }: { one: string; other: string }) {
  const load = (id: string) => async (s: AbortSignal) => ({
    job: await call<Job>('job_status', { job_id: id }, s), steps: (await journalOf(id, s)).steps, lines: (await logsOf(id, s)).lines,
  })
  const a = useData(load(one), [one])
  const b = useData(load(other), [other])
  const error = a.error ?? b.error
  if (error) return <><p><a href="#/jobs">All jobs</a></p><p class="bad">{error.message}</p></>
  if (!a.data || !b.data) return <Skeleton />
  const text = (v: NonNullable<typeof a.data>) => [
    `status: ${v.job.status}`, `script: ${v.job.script_hash ?? ''}`, `params: ${JSON.stringify(v.job.params ?? {})}`, ...v.steps.map((s) => `${s.call} → ${s.error ?? JSON.stringify(s.outcome ?? null)}`),
    ...v.lines.map((l) => `${l.stream}: ${l.text}`), `result: ${JSON.stringify(v.job.result ?? null, null, 2)}`,
  ].join('\n')
  return (
    <>
      <p><a href="#/jobs">All jobs</a></p>
      <div class="columns">{[a.data.job, b.data.job].map((j, i) => <Side key={j.job_id} job={j} sign={i === 0 ? '−' : '+'} />)}</div>
      <Diff before={text(a.data)} after={text(b.data)} />
    </>
  )
}

function Side({ job: j, sign }: { job: Job; sign: string }) {
  return (
    <section class="panel">
      <div class="row"><b class={sign === '+' ? 'good' : 'bad'}>{sign}</b><a class="name" href={`#/jobs/${j.job_id}`}>{titleOf(j)}</a><span class="mono soft">{j.job_id.slice(0, 8)}</span><State state={j.status} /></div>
      <p class="soft small">{j.started_at ? when(j.started_at * 1000) : ''}, {took(j)}</p>
    </section>
  )
}
