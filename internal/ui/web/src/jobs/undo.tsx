// What a job changed is undone: first the plan, then a decision.
import { useState } from 'preact/hooks'
import { call } from '../mcp'
import { attempt } from '../upstream'
import { count } from '../format'
import { nameOf, aboutOf } from './steps'
import { titleOf, type Job } from './job'

interface Undone {
  status: string
  undo_job_id?: string
  approval_id?: string
  steps: { step: number; change: string; tool?: string; problem?: string }[]
}

/** The button, and the plan once it is made. */
export function Undo({ job }: { job: Job }) {
  const [plan, setPlan] = useState<Undone>()
  const [busy, setBusy] = useState(false)
  const make = async () => {
    setBusy(true)
    await attempt(async () => setPlan(await call<Undone>('job_undo', { job_id: job.job_id })))
    setBusy(false)
  }
  if (!plan) return (
    <section class="panel" aria-label="Undo">
      <h2>Undo</h2>
      <p class="soft small">Shows first what can be restored. Nothing is changed before you allow it.</p>
      <button type="button" disabled={busy} onClick={() => void make()}>Undo…</button>
    </section>
  )
  const able = plan.steps.filter((s) => !s.problem)
  const decide = (decision: 'allow' | 'deny') => void attempt(() => call('approval_decide', { approval_id: plan.approval_id, decision }), decision === 'allow' ? `${titleOf(job)} is being undone` : 'nothing was changed').then((done) => done && setPlan({ ...plan, status: decision === 'allow' ? 'running' : 'denied', approval_id: undefined }))
  return (
    <section class="panel chosen" aria-label="Undo">
      <div class="row spread"><h2>Undo this run</h2>{plan.approval_id && <span class="soft small">a plan, nothing is done yet</span>}</div>
      <ul class="list small">
        {plan.steps.map((s) => <li key={s.step} class={s.problem ? 'warn' : ''}><b class="mono">{nameOf(s.change)}</b> {aboutOf(s.change)}<span class="second">{s.problem ? `stays: ${s.problem}` : `by ${s.tool}`}</span></li>)}
      </ul>
      {plan.steps.length === 0 && <p class="soft">It changed nothing that can be undone.</p>}
      {plan.approval_id && (
        <div class="row actions">
          <button type="button" class="main" onClick={() => decide('allow')}>Undo {able.length} of {count(plan.steps.length, 'change')}</button>
          <button type="button" onClick={() => decide('deny')}>Cancel</button>
          <a class="small" href={`#/approvals/${plan.approval_id}`}>Show differences</a>
        </div>
      )}
      {plan.status === 'denied' && <p class="soft">Nothing was changed.</p>}
      {plan.undo_job_id && !plan.approval_id && plan.status !== 'denied' && <p><a href={`#/jobs/${plan.undo_job_id}`}>The run that undoes it</a></p>}
    </section>
  )
}
