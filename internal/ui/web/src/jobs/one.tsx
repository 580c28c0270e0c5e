// One job: state, result, effects, output while it runs, and what can be done with it.
import type { ComponentChildren } from 'preact'
import { get } from '../api'
import { typeName } from '../contents'
import { duration, firstLine, moment, when } from '../format'
import { useHeading } from '../heading'
import { call } from '../mcp'
import { Copy } from '../parts/copy'
import { Glimpse } from '../parts/glimpse'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Output } from '../parts/output'
import { SharedMark, ShareButton } from '../parts/share'
import { State } from '../parts/state'
import { Value } from '../parts/value'
import { useData } from '../resource'
import { isPermitted } from '../shares'
import { Effects } from './effects'
import { active, Cancel, journalOf, logsOf, Progress, Retry, titleOf, type Job, type Step } from './job'
import { Replay } from './replay'
import { beginning, type Wait } from './steps'
import { Undo } from './undo'
import { Skeleton } from '../parts/skeleton'

/** How often output and effects of a running job are read, in milliseconds. They have no events of their own. */
const pace = 1000

export function OneJob({ id }: { id: string }) {
  const mine = (e: { data: Record<string, unknown> }) => e.data.job_id === id
  const job = useData((s) => call<Job>('job_status', { job_id: id }, s), [id], ['job.'], mine)
  const every = job.data && active(job.data) ? pace : 0
  const journal = useData((s) => journalOf(id, s), [id, every], ['job.'], mine, every)
  const logs = useData((s) => logsOf(id, s), [id, every], ['job.'], mine, every)
  const waits = useData((s) => waitsOf(id, s), [id], ['approval.', 'job.'], (e) => e.type.startsWith('approval.') || mine(e))
  const stored = useData((s) => get<{ items: { id: string; name?: string; mime_type: string; size_bytes: number }[] }>(`/api/v1/library?tag=job:${id}&kind=result&limit=24`, s), [id, job.data?.status])
  const j = job.data
  useHeading(j ? titleOf(j) : job.error && 'Not here any more', { title: 'Jobs', href: '#/jobs' })
  if (job.error) return <p class="bad">{job.error.message}</p>
  if (!j) return <Skeleton />
  const steps = journal.data?.steps ?? []
  return (
    <>
      <div class="row actions top">
        <State state={j.status} />{active(j) && <Progress job={j} />}
        <span class="soft"><Spent job={j} steps={steps} waits={waits.data ?? []} /> {when((j.started_at ?? j.created_at) * 1000)}</span><SharedMark kind="job" of={j} />
        <span class="row end"><ShareButton kind="job" id={j.job_id} name={titleOf(j)} of={j} />{active(j) ? <Cancel job={j} /> : <Retry job={j} />}</span>
      </div>
      <div class="columns wide-first">
        <div>
          {j.error && <Failure job={j} />}
          <section class="panel" aria-label="Timeline">
            <div class="row spread"><h2>Steps</h2><span class="small soft legend"><i class="bar" /> work <i class="bar wait" /> wait {j.trace_id && <a href={`#/traces/${j.trace_id}`}>Show as trace</a>}</span></div>
            {journal.data && <Effects job={j} steps={steps} waits={waits.data ?? []} />}
          </section>
          {!j.error && <section class="panel" aria-label="Result"><div class="row spread"><h2>Result</h2>{j.result !== undefined && <Copy text={JSON.stringify(j.result, null, 2)}>Copy</Copy>}</div>{j.result === undefined ? <Hint>{active(j) ? 'None yet.' : 'None.'}</Hint> : <Value value={j.result} />}</section>}
          {stored.data && stored.data.items.length > 0 && (
            <section class="panel" aria-label="Stored">
              <h2>Stored</h2>
              <div class="cards results">{stored.data.items.map((a) => <article class="card result" key={a.id}><Glimpse address={`/api/v1/library/${a.id}/content`} type={a.mime_type} bytes={a.size_bytes} name={a.name ?? ''} /><h3><a href={`#/artifacts/${a.id}`}>{a.name || typeName(a.mime_type)}</a></h3></article>)}</div>
            </section>
          )}
          <section class="panel" aria-label="Output"><h2>Output {active(j) && <span class="now small">live</span>}</h2>{logs.data && <Output lines={logs.data.lines} follow={active(j)} />}</section>
        </div>
        <div>
          {!active(j) && isPermitted(j, 'edit') && steps.some((s) => (s.kind === 'write' || s.kind === 'repeat') && s.done && !s.error) && <Undo key={j.job_id} job={j} />}
          <Facts job={j} />
          {!active(j) && logs.data && <Replay job={j} lines={logs.data.lines} />}
        </div>
      </div>
    </>
  )
}

/** How long it took: worked, and waited for somebody. */
function Spent({ job: j, steps, waits }: { job: Job; steps: Step[]; waits: Wait[] }) {
  if (!j.started_at && waits.length === 0) return null
  const begun = beginning(j.started_at ?? j.created_at, steps, waits), end = j.completed_at ?? Date.now() / 1000
  const waited = waits.reduce((sum, w) => sum + Math.max(0, Math.min(w.to, end) - w.from), 0)
  if (waited === 0) return <>{duration((end - begun) * 1000)} ·</>
  return <>{duration((end - begun) * 1000)}: worked {duration(Math.max(0, end - begun - waited) * 1000)}, <span class="warn">waited {duration(waited * 1000)} for a decision</span> ·</>
}

/** The times in which the job waited for a decision. */
async function waitsOf(id: string, signal: AbortSignal): Promise<Wait[]> {
  const { approvals } = await call<{ approvals: { job_id?: string; created_at: string; decided_at?: string }[] }>('approval_list', { status: 'any', limit: 500 }, signal)
  return approvals.filter((a) => a.job_id === id).map((a) => ({ from: Date.parse(a.created_at) / 1000, to: (a.decided_at ? Date.parse(a.decided_at) : Date.now()) / 1000 })).sort((a, b) => a.from - b.from)
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
    ['Script', j.script_hash && <a href={`#/scripts/${j.script_hash}`}>{j.name || j.script_hash.slice(0, 12)}</a>],
    ['Started by', j.schedule_id ? <a href="#/library/schedules">a schedule</a> : j.by || j.creator],
    ['Created', moment(j.created_at * 1000)],
    ['Started', j.started_at && moment(j.started_at * 1000)],
    ['Ended', j.completed_at && moment(j.completed_at * 1000)],
    ['Tags', j.tags.length > 0 && j.tags.map((t) => (t.startsWith('undo:') ? <a key={t} href={`#/jobs/${t.slice(5)}`}>undoes a run</a> : <a key={t} class="tag at soft" href={`#/jobs?tag=${encodeURIComponent(t)}`}>{t}</a>))],
    ['Other runs', j.name && <a href={`#/jobs?script=${encodeURIComponent(j.name)}`}>of {j.name}</a>],
    ['Id', <span class="mono small">{j.job_id}</span>],
  ]
  return (
    <section class="panel" aria-label="Details">
      <h2>Details</h2>
      <dl class="facts">{facts.filter(([, v]) => v).map(([name, value]) => <><dt>{name}</dt><dd>{value}</dd></>)}</dl>
      {j.params && Object.keys(j.params).length > 0 && <><h3>Parameters</h3><Json value={j.params} /></>}
    </section>
  )
}
