// The result of a run: its value, output, calls and trace.
import { get } from '../api'
import { duration, firstLine } from '../format'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Output } from '../parts/output'
import { Plan } from '../parts/plan'
import { Waterfall, type Span, type Trace } from '../parts/waterfall'
import { useData } from '../resource'
import type { Run } from './run'
import { Skeleton } from '../parts/skeleton'

export function Outcome({ ran }: { ran?: Run }) {
  if (!ran) return <Hint>No run yet. Run executes the script; Preview shows what it would change, beside the code.</Hint>
  return (
    <>
      <p class="soft ran">{ran.kind === 'run' ? 'Ran' : 'Previewed'} in {duration(ran.took)}</p>
      {ran.status === 'pending_approval' && <p class="warn">It is waiting for <a href="#/approvals">approval</a>.</p>}
      <div class="columns">
        <div>
          {ran.error && <Failed message={ran.error.message} />}
          {ran.result !== undefined && ran.status !== 'pending_approval' && <section class="panel" aria-label="Result"><h2>Result</h2><Json value={ran.result} /></section>}
        </div>
        <div>
          <section class="panel" aria-label="Output"><h2>Output</h2><Output lines={(ran.output ?? []).filter((l) => l.stream !== 'log')} /></section>
          {ran.output?.some((l) => l.stream === 'log') && <section class="panel" aria-label="Log"><h2>Log</h2><Output lines={ran.output.filter((l) => l.stream === 'log')} /></section>}
        </div>
      </div>
      <RunTrace id={ran.trace} />
    </>
  )
}

function Failed({ message }: { message: string }) {
  return (
    <section class="panel" aria-label="Error">
      <h2>Error</h2>
      <p class="bad breaks">{firstLine(message)}</p>
      {message.includes('\n') && <details><summary>Stack and advice</summary><pre class="bad">{message}</pre></details>}
    </section>
  )
}

/** The plan of a preview, beside the code. */
export function Planned({ ran }: { ran: Run }) {
  if (!ran.plan) return null
  return (
    <section class="panel" aria-label="Plan">
      <h2>Plan</h2>
      <Plan steps={ran.plan} />
      {ran.complete === false && <p class="warn">The plan is incomplete: the preview did not reach the end of the script.</p>}
    </section>
  )
}

/** The calls and the trace of a run. */
function RunTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => retry(() => get<Trace>(`/api/v1/traces/${id}`, s)), [id])
  if (error) return <p class="soft">{error.message}</p>
  if (!data) return <Skeleton />
  return (
    <>
      <Calls spans={data.spans ?? []} />
      <section class="panel" aria-label="Trace"><h2>Trace</h2><Waterfall trace={data} /><p><a href={`#/traces/${id}`}>Open trace</a></p></section>
    </>
  )
}

/** The tools that a script called. */
function Calls({ spans }: { spans: Span[] }) {
  const calls = spans.filter((s) => s.name.startsWith('luanette.mcp.'))
  if (calls.length === 0) return null
  return (
    <section class="panel" aria-label="Calls">
      <h2>Calls</h2>
      <table class="stack" aria-label="Calls">
        <thead><tr><th>Tool</th><th>Arguments</th><th>Outcome</th><th class="num">Took</th></tr></thead>
        <tbody>
          {calls.map((s) => (
            <tr key={s.span_id}>
              <td class="mono"><a href={`#/tools/${s.name.slice('luanette.mcp.'.length)}`}>{s.name.slice('luanette.mcp.'.length)}</a></td>
              <td class="mono soft"><span class="brief">{s.attributes?.['mcp.params']}</span></td>
              <td>{s.failed ? <span class="bad brief">{s.error || 'failed'}</span> : <span class="good">ok</span>}</td>
              <td class="num">{duration(s.duration_ns / 1e6)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
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
