import { useState } from 'preact/hooks'
import { call } from '../mcp'
import { useData } from '../resource'
import { clock, duration, firstLine } from '../format'
import { notify } from '../parts/notices'
import { Bar } from '../parts/bar'
import { Diff } from '../parts/diff'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Output, type OutputLine } from '../parts/output'
import { Schedules } from '../parts/schedules'
import { State } from '../parts/state'
import { useFilter } from '../route'

export interface Job {
  job_id: string
  status: string
  name?: string
  script_hash?: string
  creator?: string
  tags: string[]
  created_at: number
  started_at?: number
  completed_at?: number
  progress: number
  message?: string
  error?: { code: string; message: string; hint?: string }
  result?: unknown
}

interface Step {
  step: number
  effect: string
  kind: string
  call: string
  time: number
  done: boolean
  error?: string
  outcome?: unknown
}

const states = ['', 'pending', 'running', 'waiting', 'complete', 'failed', 'cancelled']

export function Jobs({ rest }: { rest: string }) {
  const [id, other] = rest.split('/')
  if (other) return <Compare one={id} other={other} />
  return id ? <OneJob id={id} /> : <AllJobs />
}

function AllJobs() {
  const [status, setStatus] = useFilter('state')
  const [find, setFind] = useFilter('find')
  const [marked, setMarked] = useState<string[]>([])
  const { data, error } = useData((s) => call<{ jobs: Job[]; total: number }>('job_list', { limit: 200, ...(status && { status }) }, s), [status], ['job.'])
  const shown = data?.jobs.filter((j) => [titleOf(j), j.job_id, j.creator ?? '', ...j.tags].some((text) => text.toLowerCase().includes(find.toLowerCase())))
  const mark = (id: string) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m.slice(-1), id]))
  return (
    <>
      <div class="row filters">
        <label for="status">Status</label>
        <select id="status" value={status} onChange={(e) => setStatus(e.currentTarget.value)}>
          {states.map((s) => <option key={s} value={s}>{s || 'all'}</option>)}
        </select>
        <label for="job-words" class="hidden">Find a job</label>
        <input id="job-words" type="search" placeholder="Script, tag or creator" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <a class="button" href="#/scripts">Start a script</a>
        {marked.length === 2 && <a href={`#/jobs/${marked[0]}/${marked[1]}`}>Compare both</a>}
      </div>
      <Schedules />
      {error && <p class="bad">{error.message}</p>}
      {data?.jobs.length === 0 && <Hint>{status ? `No job is ${status}.` : 'No jobs yet. Start a stored script from its page, or with `luanette job start HASH`.'}</Hint>}
      {shown && shown.length > 0 && <div class="panel scroll">
        <table class="stack jobs">
          <thead><tr><th><span class="hidden">Compare</span></th><th>Job</th><th>Status</th><th>Progress</th><th>Started</th><th class="num">Took</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>
            {shown.map((j) => (
              <tr key={j.job_id}>
                <td><input type="checkbox" aria-label={`compare ${j.job_id}`} checked={marked.includes(j.job_id)} onChange={() => mark(j.job_id)} /></td>
                <td><a href={`#/jobs/${j.job_id}`}>{titleOf(j)}</a> <span class="soft mono">{j.job_id.slice(0, 8)}</span> <span class="soft">{j.creator}</span> {j.tags.map((t) => <span key={t} class="tag at soft">{t}</span>)}</td>
                <td><State state={j.status} /></td>
                <td><Progress job={j} /></td>
                <td>{j.started_at ? clock(j.started_at * 1000) : ''}</td>
                <td class="num">{took(j)}</td>
                <td>{active(j) && <Cancel id={j.job_id} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>}
      {data && data.total > data.jobs.length && <p class="soft">The newest {data.jobs.length} of {data.total}.</p>}
    </>
  )
}

/** The name of a job, or of its script. */
function titleOf(j: Job): string {
  return j.name || (j.script_hash ? `script ${j.script_hash.slice(0, 12)}` : j.job_id)
}

function active(j: Job): boolean {
  return j.status === 'pending' || j.status === 'running' || j.status === 'waiting'
}

function took(j: Job): string {
  return j.started_at ? duration(((j.completed_at ?? Date.now() / 1000) - j.started_at) * 1000) : ''
}

function Progress({ job }: { job: Job }) {
  if (job.error) return <span class="bad brief">{firstLine(job.error.message)}</span>
  if (job.status === 'waiting') return <a href="#/approvals">waiting for approval</a>
  if (job.status !== 'running') return <span class="soft">{job.message}</span>
  return <><progress max={1} value={job.progress} aria-label={`progress of ${job.name || job.job_id}`} /> {job.message}</>
}

function Cancel({ id }: { id: string }) {
  return (
    <button type="button" onClick={async () => {
      try {
        await call('job_cancel', { job_id: id })
      } catch (e) {
        notify('bad', (e as Error).message)
      }
    }}>Cancel</button>
  )
}

function OneJob({ id }: { id: string }) {
  const job = useData((s) => call<Job>('job_status', { job_id: id }, s), [id], ['job.'])
  const journal = useData((s) => call<{ steps: Step[]; total: number }>('job_journal', { job_id: id, limit: 1000 }, s), [id], ['job.'])
  const logs = useData((s) => call<{ lines: OutputLine[] }>('job_logs', { job_id: id }, s), [id], ['job.'])
  const [replayed, setReplayed] = useState<unknown>()
  const j = job.data
  return (
    <>
      <p><a href="#/jobs">All jobs</a></p>
      {job.error && <p class="bad">{job.error.message}</p>}
      {j && (
        <>
          <div class="row">
            <h2>{titleOf(j)}</h2> <State state={j.status} /> {active(j) && <Progress job={j} />} <span class="soft">{took(j)}</span>
            {active(j) ? <Cancel id={id} /> : (
              <button type="button" onClick={async () => setReplayed(await call('job_replay', { job_id: id }).catch((e: Error) => ({ error: e.message })))}>Replay</button>
            )}
          </div>
          <p class="mono soft">{j.job_id}{j.script_hash && <>, script <a href={`#/scripts/${j.script_hash}`}>{j.script_hash.slice(0, 12)}</a></>}</p>
          {j.error && <pre class="bad">{j.error.message}{j.error.hint && `\n${j.error.hint}`}</pre>}
          <h2>Result</h2>
          {j.result === undefined ? <Hint>{active(j) ? 'None yet.' : 'None.'}</Hint> : <Json value={j.result} />}
          {replayed !== undefined && <><h2>Replay</h2><Json value={replayed} /></>}
          <h2>Timeline</h2>
          {journal.data && <Timeline job={j} steps={journal.data.steps} />}
          <h2>Output</h2>
          {logs.data && <Output lines={logs.data.lines} />}
        </>
      )}
    </>
  )
}

/** The effects of a job; each bar begins at the end of the previous effect. */
function Timeline({ job, steps }: { job: Job; steps: Step[] }) {
  if (steps.length === 0) return <Hint>This job had no effects.</Hint>
  const start = job.started_at ?? job.created_at
  const total = Math.max((job.completed_at ?? Date.now() / 1000) - start, 0.001)
  let before = start
  return (
    <div class="scroll">
      <table class="waterfall">
        <thead><tr><th>Effect</th><th class="lane">Time</th><th class="num">Took</th></tr></thead>
        <tbody>
          {steps.map((s) => {
            const from = before
            before = Math.max(before, s.time)
            return (
              <tr key={s.step}>
                <td>
                  <details>
                    <summary class="mono"><span class="soft">{s.step}</span> {s.call} {s.error && <span class="bad">{s.error}</span>} {!s.done && <span class="warn">running</span>}</summary>
                    <Json value={s.outcome ?? null} />
                  </details>
                </td>
                <td class="lane"><Bar from={(from - start) / total} size={(s.time - from) / total} bad={s.error !== undefined} /></td>
                <td class="num">{duration((s.time - from) * 1000)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** Compares the effects, output and result of two runs. */
function Compare({ one, other }: { one: string; other: string }) {
  const load = (id: string) => async (s: AbortSignal) => ({
    job: await call<Job>('job_status', { job_id: id }, s),
    steps: (await call<{ steps: Step[] }>('job_journal', { job_id: id, limit: 1000 }, s)).steps,
    lines: (await call<{ lines: OutputLine[] }>('job_logs', { job_id: id }, s)).lines,
  })
  const a = useData(load(one), [one])
  const b = useData(load(other), [other])
  const error = a.error ?? b.error
  if (error) return <><p><a href="#/jobs">All jobs</a></p><p class="bad">{error.message}</p></>
  if (!a.data || !b.data) return <p class="soft">…</p>
  const text = (v: NonNullable<typeof a.data>) => [
    `status: ${v.job.status}`, ...v.steps.map((s) => `${s.call} → ${s.error ?? JSON.stringify(s.outcome ?? null)}`),
    ...v.lines.map((l) => `${l.stream}: ${l.text}`), `result: ${JSON.stringify(v.job.result ?? null)}`,
  ].join('\n')
  return (
    <>
      <p><a href="#/jobs">All jobs</a></p>
      <p><a href={`#/jobs/${one}`}>{titleOf(a.data.job)} {one.slice(0, 8)}</a> (−) and <a href={`#/jobs/${other}`}>{titleOf(b.data.job)} {other.slice(0, 8)}</a> (+)</p>
      <Diff before={text(a.data)} after={text(b.data)} />
    </>
  )
}
