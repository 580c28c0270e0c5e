import { useData } from '../resource'
import { clock, count, duration } from '../format'
import { Bar } from '../parts/bar'

interface Trace {
  trace_id: string
  name: string
  start: string
  duration_ns: number
  failed: boolean
  span_count: number
  spans?: Span[]
}

interface Span {
  span_id: string
  parent_id?: string
  name: string
  kind: string
  start: string
  duration_ns: number
  failed?: boolean
  error?: string
  attributes?: Record<string, string>
  events?: { name: string; time: string; attributes?: Record<string, string> }[]
}

async function get<T>(path: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal })
  const body = await answer.json()
  if (!answer.ok) throw new Error(body.message)
  return body as T
}

/** Recent traces, or one of them as a waterfall. */
export function Traces({ rest }: { rest: string }) {
  return rest ? <OneTrace id={rest} /> : <AllTraces />
}

function AllTraces() {
  const { data, error } = useData((s) => get<{ traces: Trace[] }>('/api/v1/traces?limit=100', s), [], ['tool.', 'job.', 'chat.'])
  if (error) return <p class="bad">{error.message}</p>
  if (data?.traces.length === 0) return <p class="soft">No request was traced yet. Call a tool, and it will be here.</p>
  return (
    <div class="scroll">
      <table>
        <thead><tr><th>Time</th><th>Request</th><th class="num">Took</th><th class="num">Spans</th></tr></thead>
        <tbody>
          {data?.traces.map((t) => (
            <tr key={t.trace_id}>
              <td>{clock(t.start)}</td>
              <td><a href={`#/traces/${t.trace_id}`}>{t.name}</a> {t.failed && <span class="bad">failed</span>}</td>
              <td class="num">{duration(t.duration_ns / 1e6)}</td>
              <td class="num">{t.span_count}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function OneTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => get<Trace>(`/api/v1/traces/${encodeURIComponent(id)}`, s), [id])
  return (
    <>
      <p><a href="#/traces">All traces</a></p>
      {error && <p class="bad">{error.message}</p>}
      {data && (
        <>
          <p>{data.name}, {clock(data.start)}, {duration(data.duration_ns / 1e6)}, {count(data.span_count, 'span')}</p>
          <p class="soft mono">{data.trace_id}</p>
          <Waterfall trace={data} />
        </>
      )}
    </>
  )
}

/** Spans under their parents, each a bar where it was in time. */
function Waterfall({ trace }: { trace: Trace }) {
  const start = Date.parse(trace.start)
  const total = Math.max(trace.duration_ns / 1e6, 0.001)
  return (
    <div class="scroll">
      <table class="waterfall">
        <thead><tr><th>Step</th><th class="lane">When</th><th class="num">Took</th></tr></thead>
        <tbody>
          {inTreeOrder(trace.spans ?? []).map(({ span, depth }) => (
            <tr key={span.span_id}>
              <td style={{ paddingLeft: `${0.6 + depth}rem` }}>
                <details>
                  <summary>{span.name} {span.failed && <span class="bad">{span.error || 'failed'}</span>}</summary>
                  <dl class="soft mono">
                    {Object.entries(span.attributes ?? {}).map(([k, v]) => <div key={k}>{k} = {v}</div>)}
                    {span.events?.map((e, i) => <div key={i}>{e.name} {JSON.stringify(e.attributes ?? {})}</div>)}
                  </dl>
                </details>
              </td>
              <td class="lane">
                <Bar from={(Date.parse(span.start) - start) / total} size={span.duration_ns / 1e6 / total} bad={span.failed} />
              </td>
              <td class="num">{duration(span.duration_ns / 1e6)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function inTreeOrder(spans: Span[]): { span: Span; depth: number }[] {
  const known = new Set(spans.map((s) => s.span_id))
  const under = new Map<string, Span[]>()
  for (const s of spans) {
    const parent = s.parent_id && known.has(s.parent_id) ? s.parent_id : ''
    under.set(parent, [...(under.get(parent) ?? []), s])
  }
  const ordered: { span: Span; depth: number }[] = []
  const walk = (parent: string, depth: number) => {
    for (const span of under.get(parent) ?? []) {
      ordered.push({ span, depth })
      walk(span.span_id, depth + 1)
    }
  }
  walk('', 0)
  return ordered
}
