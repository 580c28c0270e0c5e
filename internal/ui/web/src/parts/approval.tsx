// One request for approval: what a script wants to do, and what came of it.
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { me } from '../api'
import { deedOf, linesOf, scriptOf } from '../deed'
import { ago, count, duration, until, when } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { attempt } from '../upstream'
import { Json } from './json'
import { Output, type OutputLine } from './output'
import { Plan, type Planned } from './plan'
import { State } from './state'
import { Skeleton } from './skeleton'

export interface Approval {
  approval_id: string
  status: string
  subject: string
  script: string
  script_hash?: string
  job_id?: string
  certain: boolean
  complete: boolean
  incomplete?: string // why the plan is not complete
  plan_digest: string
  created_at: string
  expires_at: string
  decided_at?: string
  decided_by?: string
  asked_by?: string
  undoes_job?: string
  role?: string // those who decide must have it
  needed?: number // how many must agree
  agreed?: number
  may_decide?: boolean
  why_not?: string
  decisions?: { by: string; for?: string; decision: string; at: string }[]
  plan: Planned[]
  output?: OutputLine[]
  outcome?: { result?: unknown; error?: { message: string }; output?: OutputLine[] }
}

/** For what the next decision is remembered. */
export const remember = signal('')

/** The request that a person sees: only what it shows may be decided with a key. */
export const shownApproval = signal<Approval | undefined>(undefined)

/** Decides about the plan as it was shown; reports whether it is decided. If the plan has changed, it is not. */
export function decideApproval(a: Approval, decision: 'allow' | 'deny'): Promise<boolean> {
  return attempt(async () => {
    await call('approval_decide', { approval_id: a.approval_id, decision, remember: remember.value || undefined, plan: a.plan_digest })
    remember.value = ''
  }, decision === 'allow' ? 'allowed' : 'denied')
}

/** `known` is the request if a list has it already. Opening it makes its plan again; so does `version` when it changes. */
export function ApprovalCard({ id, known, version, decide }: { id: string; known?: Approval; version: number; decide: (a: Approval, decision: 'allow' | 'deny') => void }) {
  const loaded = useData((s) => call<Approval>('approval_status', { approval_id: id }, s), [id, version], ['approval.'])
  const a = loaded.data ?? known
  useLayoutEffect(() => {
    shownApproval.value = a
    return () => (shownApproval.value = undefined)
  }, [a])
  if (!a) return loaded.error ? <p class="bad">{loaded.error.message}</p> : <Skeleton />
  return (
    <article class="panel" aria-label={`approval of ${a.subject}`}>
      <div class="row title"><h2>{deedOf(a.subject, a.plan)}</h2>{a.status !== 'pending' && <State state={a.status} />}</div>
      <p class="small soft"><code>{a.subject}</code><Lines plan={a.plan} /></p>
      <dl class="facts">
        <dt>Asked by</dt><dd>{isDirect(a) ? whoOf(a) ?? 'a client' : a.script_hash ? <a href={`#/scripts/${a.script_hash}`}>{scriptOf(a)}</a> : scriptOf(a)}{a.job_id && <>, <a href={`#/jobs/${a.job_id}`}>in this run</a></>}{a.undoes_job && <>, which undoes <a href={`#/jobs/${a.undoes_job}`}>another run</a></>}{a.asked_by && !isDirect(a) && <>, for {whoOf(a)}</>}</dd>
        <dt>When</dt><dd>{when(a.created_at)}, {ago(a.created_at)}</dd>
        {a.status === 'pending' && <><dt>Deadline</dt><dd>denied by itself {until(a.expires_at)}</dd></>}
        {a.decided_at && <><dt>Decided</dt><dd>{when(a.decided_at)}{a.decided_by && ` by ${a.decided_by}`}, after {duration(Date.parse(a.decided_at) - Date.parse(a.created_at))}</dd></>}
        {a.status === 'pending' && <><dt>Then</dt><dd>{isDirect(a) ? 'the call is made' : a.job_id ? 'the run goes on, and gets an error there if it is denied' : 'the script goes on, and gets an error there if it is denied'}</dd></>}
      </dl>
      <Deciders approval={a} />
      {a.status === 'pending' && loaded.data && <p class="row small soft"><span class="good">●</span> the differences are those of now, read when this was opened <button type="button" class="quiet" onClick={loaded.reload}>Read again</button></p>}
      <Plan steps={a.plan} />
      {a.output && a.output.length > 0 && <details><summary class="soft">Output so far</summary><Output lines={a.output} /></details>}
      {!a.complete && <p class="warn">The plan is incomplete: {a.incomplete || 'the preview did not reach the end of the script'}.</p>}
      {a.status === 'pending' && (
        <div class="row actions">
          <button type="button" class="main" disabled={a.may_decide === false} onClick={() => decide(a, 'allow')}>Allow <kbd>a</kbd></button>
          <button type="button" onClick={() => decide(a, 'deny')}>Deny <kbd>d</kbd></button>
          <label for={`remember-${id}`}>and remember for</label>
          <select id={`remember-${id}`} value={remember.value} onChange={(e) => (remember.value = e.currentTarget.value)}>
            <option value="">nothing</option><option value="tool">this tool</option><option value="namespace">its server</option><option value="script">this script</option>
          </select>
        </div>
      )}
      {a.outcome && <Outcome outcome={a.outcome} />}
    </article>
  )
}

/** Whether a client called the tool itself. */
const isDirect = (a: Approval) => a.script === a.subject && !a.job_id

/** For whom it asks. */
export const whoOf = (a: { asked_by?: string }) => (a.asked_by === me.value?.name || (me.value?.open && a.asked_by === 'the owner of the machine') ? 'you' : a.asked_by)

/** How many lines of files change. */
export function Lines({ plan }: { plan: Planned[] }) {
  const { added, removed } = linesOf(plan)
  return added + removed > 0 ? <span> <span class="good">+{added}</span> <span class="bad">−{removed}</span></span> : null
}

/** Who has to agree, who has, and why the user may not. */
function Deciders({ approval: a }: { approval: Approval }) {
  const several = (a.needed ?? 1) > 1 || a.role
  const waits = a.status === 'pending'
  if (!several && !(waits && a.why_not) && !a.decisions?.length) return null
  return (
    <div class="deciders" role="group" aria-label="Who decides">
      {several && <p>Needs {count(a.needed ?? 1, 'approval')}{a.role && <> by people with the role <span class="kind">{a.role}</span></>}: {a.agreed ?? 0} of {a.needed ?? 1}{a.asked_by && <span class="soft">, asked by {a.asked_by}</span>}</p>}
      {several && a.decisions && a.decisions.length > 0 && <ul class="list">{a.decisions.map((d) => <li key={`${d.by} ${d.at}`}><span class={d.decision === 'allow' ? 'good' : 'bad'}>{d.decision === 'allow' ? 'allowed' : 'denied'}</span> by {d.by}{d.for && ` for ${d.for}`} <span class="soft">{ago(d.at)}</span></li>)}</ul>}
      {waits && a.may_decide === false && a.why_not && <p class="warn">You cannot allow it: {a.why_not}</p>}
    </div>
  )
}

/** What the script did after the decision. */
function Outcome({ outcome: o }: { outcome: NonNullable<Approval['outcome']> }) {
  return (
    <section aria-label="Outcome">
      <h3>Outcome</h3>
      {o.error ? <p class="bad">{o.error.message}</p> : <Json value={o.result} />}
      {o.output && o.output.length > 0 && <Output lines={o.output} />}
    </section>
  )
}
