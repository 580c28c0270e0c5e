import { useState } from 'preact/hooks'
import { may } from '../api'
import { call } from '../mcp'
import { useData } from '../resource'
import { ago } from '../format'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { Output, type OutputLine } from '../parts/output'
import { Pins } from '../parts/pins'
import { Plan, type Planned } from '../parts/plan'
import { State } from '../parts/state'

interface Approval {
  approval_id: string
  status: string
  subject: string
  script: string
  script_hash?: string
  job_id?: string
  certain: boolean
  complete: boolean
  created_at: string
  expires_at: string
  decided_by?: string
  plan: Planned[]
  output?: OutputLine[]
}

interface Rule {
  id: string
  decision: string
  scope: string
  subject: string
  created_at: string
}

/** Approvals that scripts wait for, and definitions that await review. */
export function Approvals() {
  const [state, setState] = useState('pending')
  const { data, error, reload } = useData((s) => call<{ approvals: Approval[]; remembered: Rule[] }>('approval_list', { status: state }, s), [state], ['approval.'])
  return (
    <>
      <div class="row filters">
        <label for="state">Show</label>
        <select id="state" value={state} onChange={(e) => setState(e.currentTarget.value)}>
          {['pending', 'allowed', 'denied', 'withdrawn', 'any'].map((s) => <option key={s}>{s}</option>)}
        </select>
      </div>
      {error && <p class="bad">{error.message}</p>}
      {data?.approvals.length === 0 && <Hint>{state === 'pending' ? 'Nothing to decide. With `approve = "writes"` in luanette.toml, scripts ask before they change something.' : 'None.'}</Hint>}
      <h2 class="hidden">Requests</h2>
      <div class="cards wider">{data?.approvals.map((a) => <Card key={a.approval_id} approval={a} decided={reload} />)}</div>
      {may('admin') && <><h2>Definitions awaiting review</h2><Pins /></>}
      <h2>Remembered decisions</h2>
      {data?.remembered.length === 0 && <Hint>None.</Hint>}
      <ul class="list">
        {data?.remembered.map((r) => (
          <li key={r.id} class="row">
            <span class={r.decision === 'allow' ? 'good' : 'bad'}>{r.decision}</span> the {r.scope} <code>{r.subject}</code>
            <button type="button" onClick={() => void attempt('approval_forget', { id: r.id }, 'decision forgotten').then(reload)}>Forget</button>
          </li>
        ))}
      </ul>
    </>
  )
}

function Card({ approval: a, decided }: { approval: Approval; decided: () => void }) {
  const [remember, setRemember] = useState('')
  const decide = (decision: string) =>
    attempt('approval_decide', { approval_id: a.approval_id, decision, remember: remember || undefined }, decision === 'allow' ? 'allowed' : 'denied').then(decided)
  return (
    <article class="card" aria-label={`approval of ${a.subject}`}>
      <h3><code>{a.subject}</code> <State state={a.status} /></h3>
      <p class="soft small">
        {a.job_id ? <a href={`#/jobs/${a.job_id}`}>job {a.job_id.slice(0, 8)}</a> : a.script}{a.script_hash && <> of <a href={`#/scripts/${a.script_hash}`}>script {a.script_hash.slice(0, 12)}</a></>}, requested {ago(a.created_at)}
      </p>
      <Plan steps={a.plan} />
      {a.output && a.output.length > 0 && <details><summary class="soft">output so far</summary><Output lines={a.output} /></details>}
      {!a.complete && <p class="warn">The plan is incomplete: the preview did not reach the end of the script.</p>}
      {a.status === 'pending' ? (
        <div class="row">
          <button type="button" class="main" onClick={() => void decide('allow')}>Allow</button>
          <button type="button" onClick={() => void decide('deny')}>Deny</button>
          <label for={`remember-${a.approval_id}`}>and remember for</label>
          <select id={`remember-${a.approval_id}`} value={remember} onChange={(e) => setRemember(e.currentTarget.value)}>
            <option value="">nothing</option><option value="tool">this tool</option><option value="namespace">its server</option><option value="script">this script</option>
          </select>
          <span class="soft small">denied automatically at {new Date(a.expires_at).toLocaleString()}</span>
        </div>
      ) : a.decided_by && <p class="soft">by {a.decided_by}</p>}
    </article>
  )
}

async function attempt(tool: string, args: unknown, done: string): Promise<void> {
  try {
    await call(tool, args)
    notify('good', done)
  } catch (e) {
    notify('bad', (e as Error).message)
  }
}
