// The steps of a job on a time axis, with waits as waits.
import { useState } from 'preact/hooks'
import { duration } from '../format'
import { Hint } from '../parts/hint'
import { Value } from '../parts/value'
import type { Job, Step } from './job'
import { aboutOf, beginning, isInternal, nameOf, rowsOf, type Row, type Wait } from './steps'

export function Effects({ job, steps, waits }: { job: Job; steps: Step[]; waits: Wait[] }) {
  const [all, setAll] = useState(false)
  const internal = steps.filter(isInternal).length
  const begun = beginning(job.started_at ?? job.created_at, steps, waits)
  const rows = rowsOf(steps.filter((s) => all || !isInternal(s)), waits, begun)
  const total = Math.max((job.completed_at ?? Date.now() / 1000) - begun, 0.001)
  if (rows.length === 0 && internal === 0) return <Hint>It called nothing.</Hint>
  return (
    <>
      <table class="waterfall steplist">
        <thead><tr><th>Step</th><th class="lane"><span class="axis"><span>0</span><span>{duration(total * 500)}</span><span>{duration(total * 1000)}</span></span></th><th class="num">Took</th></tr></thead>
        <tbody>{rows.map((r) => <StepRow key={r.key} of={r} total={total} />)}</tbody>
      </table>
      {internal > 0 && <button type="button" class="quiet" onClick={() => setAll(!all)}>{all ? 'Hide' : 'Show'} {internal} internal {internal === 1 ? 'step' : 'steps'}</button>}
    </>
  )
}

function StepRow({ of: r, total }: { of: Row; total: number }) {
  const part = (from: number, to: number) => ({ left: `${Math.min(99.5, (from / total) * 100)}%`, width: `${Math.max(0.4, ((to - from) / total) * 100)}%` })
  const about = aboutOf(r.call)
  return (
    <tr>
      <td>
        <details>
          <summary><span class={r.error ? 'dot bad' : r.done ? 'dot good' : 'dot warn'} /><b class="mono">{nameOf(r.call)}</b>{r.times > 1 && <span class="soft"> ×{r.times}</span>} <span class="soft oneline about">{about}</span></summary>
          <pre class="small">{r.call}</pre>
          {r.error ? <p class="bad small breaks">{r.error}</p> : r.done ? r.outcomes.slice(0, 20).map((o, i) => <Value key={i} value={Array.isArray(o) && o.length === 1 ? o[0] : o ?? null} />) : <p class="warn small">Not finished.</p>}
        </details>
        {r.error && <span class="second bad oneline">{r.error}</span>}
      </td>
      <td class="lane">
        <span class={`bar ${r.error ? 'bad' : ''}`} style={part(r.from, r.to)} />
        {r.waits.map((w) => <span key={w.from} class="bar wait" style={part(w.from, w.to)} title={`waited ${duration((w.to - w.from) * 1000)}`} />)}
      </td>
      <td class="num">{duration(r.worked * 1000)}{r.waited > 0 && <span class="second warn">+{duration(r.waited * 1000)}</span>}</td>
    </tr>
  )
}
