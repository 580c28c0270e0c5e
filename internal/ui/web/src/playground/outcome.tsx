// The result of a run: its value, output, plan and trace.
import { get } from '../api'
import { duration } from '../format'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Output } from '../parts/output'
import { Plan } from '../parts/plan'
import { Waterfall, type Trace } from '../parts/waterfall'
import { useData } from '../resource'
import type { Run } from './run'

export function Outcome({ ran }: { ran?: Run }) {
  if (!ran) return <Hint>No run yet. Run executes the script; Preview shows what it would change.</Hint>
  return (
    <>
      <p class="soft ran">{ran.kind === 'run' ? 'Ran' : 'Previewed'} in {duration(ran.took)}</p>
      {ran.error && <pre class="bad">{typeof ran.error === 'string' ? ran.error : ran.error.message}</pre>}
      {ran.status === 'pending_approval' && <p class="warn">It is waiting for <a href="#/approvals">approval</a>.</p>}
      {ran.plan && (
        <>
          <h2>Plan</h2>
          <Plan steps={ran.plan} />
          {ran.complete === false && <p class="warn">The plan is incomplete: the preview did not reach the end of the script.</p>}
        </>
      )}
      {ran.result !== undefined && ran.status !== 'pending_approval' && <><h2>Result</h2><Json value={ran.result} /></>}
      <h2>Output</h2>
      <Output lines={(ran.output ?? []).filter((l) => l.stream !== 'log')} />
      {ran.output?.some((l) => l.stream === 'log') && <><h2>Log</h2><Output lines={ran.output.filter((l) => l.stream === 'log')} /></>}
      <h2>Trace</h2>
      <RunTrace id={ran.trace} />
    </>
  )
}

/** The trace of a run. */
function RunTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => retry(() => get<Trace>(`/api/v1/traces/${id}`, s)), [id])
  if (error) return <p class="soft">{error.message}</p>
  return data ? <><Waterfall trace={data} /><p><a href={`#/traces/${id}`}>Open trace</a></p></> : <p class="soft">…</p>
}

/** Retries: the server stores a span when it ends, which may be after the response. */
async function retry<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await load()
    } catch (e) {
      if (tries === 5) throw e
      await new Promise((resolve) => setTimeout(resolve, 100 << tries))
    }
  }
}
