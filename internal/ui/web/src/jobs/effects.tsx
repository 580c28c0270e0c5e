// The effects of a job on a time axis.
import { useState } from 'preact/hooks'
import { duration } from '../format'
import { Bar } from '../parts/bar'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import type { Job, Step } from './job'

/** Steps that the runtime makes by itself, or that only ask for the time. */
function isInternal(s: Step): boolean {
  return s.done && s.error === undefined && (s.effect === 'mcp.has' || s.kind === 'moment')
}

interface Placed extends Step {
  from: number // the end of the previous effect
}

function place(steps: Step[], start: number): Placed[] {
  let before = start
  return steps.map((s) => {
    const from = before
    before = Math.max(before, s.time)
    return { ...s, from }
  })
}

/** Each bar begins at the end of the previous effect. Internal steps are folded. */
export function Effects({ job, steps }: { job: Job; steps: Step[] }) {
  const [all, setAll] = useState(false)
  if (steps.length === 0) return <Hint>This job had no effects.</Hint>
  const start = job.started_at ?? job.created_at
  const total = Math.max((job.completed_at ?? Date.now() / 1000) - start, 0.001)
  const internal = steps.filter(isInternal).length
  return (
    <>
      <div class="scroll">
        <table class="waterfall">
          <thead><tr><th>Effect</th><th class="lane">Time</th><th class="num">Took</th></tr></thead>
          <tbody>
            {place(steps, start).filter((s) => all || !isInternal(s)).map((s) => (
              <tr key={s.step}>
                <td>
                  <details>
                    <summary class="mono"><span class="soft">{s.step}</span> {s.call} {s.error && <span class="bad">{s.error}</span>} {!s.done && <span class="warn">running</span>}</summary>
                    <Json value={s.outcome ?? null} />
                  </details>
                </td>
                <td class="lane"><Bar from={(s.from - start) / total} size={(s.time - s.from) / total} bad={s.error !== undefined} /></td>
                <td class="num">{duration((s.time - s.from) * 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {internal > 0 && <button type="button" class="quiet" onClick={() => setAll(!all)}>{all ? 'Hide' : 'Show'} {internal} internal {internal === 1 ? 'step' : 'steps'}</button>}
    </>
  )
}
