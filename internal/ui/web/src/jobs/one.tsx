// One job: state, result, effects, output while it runs, and what can be done with it.
import type { ComponentChildren } from 'preact'
import { firstLine, when } from '../format'
import { call } from '../mcp'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Output } from '../parts/output'
import { SharedMark, ShareButton } from '../parts/share'
import { State } from '../parts/state'
import { useData } from '../resource'
import { Effects } from './effects'
import { active, Cancel, journalOf, logsOf, Progress, Retry, titleOf, took, type Job } from './job'
import { Replay } from './replay'

/** How often output and effects of a running job are read, in milliseconds. They have no events of their own. */
const pace = 1000

export function OneJob({ id }: { id: string }) {
  const mine = (e: { data: Record<string, unknown> }) => e.data.job_id === id
  const job = useData((s) => call<Job>('job_status', { job_id: id }, s), [id], ['job.'], mine)
  const every = job.data && active(job.data) ? pace : 0
  const journal = useData((s) => journalOf(id, s), [id, every], ['job.'], mine, every)
  const logs = useData((s) => logsOf(id, s), [id, every], ['job.'], mine, every)
  const j = job.data
  return (
    <>
      <p><a href="#/jobs">All jobs</a></p>
      {job.error && <p class="bad">{job.error.message}</p>}
      {j && (
        <>
          <div class="row title">
            <h2>{titleOf(j)}</h2> <State state={j.status} /> {active(j) && <Progress job={j} />} <span class="soft">{took(j)}</span> <SharedMark kind="job" of={j} />
            <div class="row"><ShareButton kind="job" id={j.job_id} name={titleOf(j)} of={j} />{active(j) ? <Cancel job={j} /> : <Retry job={j} />}</div>
          </div>
          <div class="columns wide-first">
            <div>
              {j.error && <Failure job={j} />}
              {!j.error && <section class="panel" aria-label="Result"><h2>Result</h2>{j.result === undefined ? <Hint>{active(j) ? 'None yet.' : 'None.'}</Hint> : <Json value={j.result} />}</section>}
              <section class="panel" aria-label="Timeline"><h2>Timeline</h2>{journal.data && <Effects job={j} steps={journal.data.steps} />}</section>
              <section class="panel" aria-label="Output"><h2>Output {active(j) && <span class="now small">live</span>}</h2>{logs.data && <Output lines={logs.data.lines} follow={active(j)} />}</section>
            </div>
            <div>
              <Facts job={j} />
              {!active(j) && logs.data && <Replay job={j} lines={logs.data.lines} />}
            </div>
          </div>
        </>
      )}
    </>
  )
}

/** Why it failed, and a way to the line. */
function Failure({ job: j }: { job: Job }) {
  const error = j.error!
  return (
    <section class="panel" aria-label="Error">
      <h2>Error</h2>
      <p class="bad breaks">{firstLine(error.message)}</p>
      {error.hint && <p>{error.hint}</p>}
      {j.script_hash && error.line && <p><a href={`#/playground/${j.script_hash}?line=${error.line}`}>Open line {error.line} in the playground</a></p>}
      {error.message.includes('\n') && <details><summary>Stack and advice</summary><pre>{error.message}</pre></details>}
    </section>
  )
}

function Facts({ job: j }: { job: Job }) {
  const facts: [string, ComponentChildren][] = [
    ['Id', <span class="mono">{j.job_id}</span>],
    ['Script', j.script_hash && <a class="mono" href={`#/scripts/${j.script_hash}`}>{j.script_hash.slice(0, 12)}</a>],
    ['Created', when(j.created_at * 1000)],
    ['Started', j.started_at && when(j.started_at * 1000)],
    ['Ended', j.completed_at && when(j.completed_at * 1000)],
    ['Creator', j.creator],
    ['Tags', j.tags.length > 0 && j.tags.map((t) => <a key={t} class="tag at soft" href={`#/jobs?tag=${encodeURIComponent(t)}`}>{t}</a>)],
    ['Trace', j.trace_id && <a class="mono" href={`#/traces/${j.trace_id}`}>{j.trace_id.slice(0, 12)}</a>],
    ['Other runs', j.name && <a href={`#/jobs?script=${encodeURIComponent(j.name)}`}>of {j.name}</a>],
  ]
  return (
    <section class="panel" aria-label="Details">
      <h2>Details</h2>
      <dl class="facts">{facts.filter(([, v]) => v).map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {j.params && Object.keys(j.params).length > 0 && <><h3>Parameters</h3><Json value={j.params} /></>}
    </section>
  )
}
