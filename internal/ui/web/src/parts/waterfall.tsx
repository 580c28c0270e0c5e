// A trace as a waterfall: spans under their parents, each with a bar on the time axis.
import { duration, firstLine } from '../format'
import { Bar } from './bar'

export interface Trace {
  trace_id: string
  name: string
  start: string
  duration_ns: number
  failed: boolean
  span_count: number
  tools?: string[]
  spans?: Span[]
}

export interface Span {
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

export function Waterfall({ trace }: { trace: Trace }) {
  const start = Date.parse(trace.start)
  const total = Math.max(trace.duration_ns / 1e6, 0.001)
  return (
    <div class="scroll">
      <table class="waterfall">
        <thead><tr><th>Span</th><th class="lane">Time</th><th class="num">Took</th></tr></thead>
        <tbody>
          {treeOrder(trace.spans ?? []).map(({ span, depth }) => (
            <tr key={span.span_id}>
              <td style={{ paddingLeft: `${0.6 + depth}rem` }}>
                <details>
                  <summary>{span.name} {span.failed && <span class="bad">{firstLine(span.error ?? '') || 'failed'}</span>}</summary>
                  {span.error?.includes('\n') && <pre class="bad">{span.error}</pre>}
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

/** The spans of a trace, each after its parent. */
export function treeOrder(spans: Span[]): { span: Span; depth: number }[] {
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
