// Two traces side by side: spans that both have in one row, and what differs marked.
import { get } from '../api'
import { count, duration, firstLine, when } from '../format'
import { Bar } from '../parts/bar'
import { diff } from '../parts/diff'
import { treeOrder, type Span, type Trace } from '../parts/waterfall'
import { useData } from '../resource'
import { Skeleton } from '../parts/skeleton'

interface Pair {
  depth: number
  name: string
  a?: Span
  b?: Span
}

/** The spans of both traces in the order of their trees; those with the same name at the same place are a pair. */
export function pairs(a: Span[], b: Span[]): Pair[] {
  const left = treeOrder(a), right = treeOrder(b)
  const key = (n: { span: Span; depth: number }) => `${n.depth} ${n.span.name}`
  let i = 0, j = 0
  return diff(left.map(key), right.map(key)).map((line): Pair => {
    const l = line.kind === '+' ? undefined : left[i++], r = line.kind === '-' ? undefined : right[j++]
    const either = (l ?? r)!
    return { depth: either.depth, name: either.span.name, a: l?.span, b: r?.span }
  })
}

/** The part of a lane that bars use; the rest is for the time. */
const laneShare = 0.78

/** A span that takes this many times longer, and this many milliseconds more, is marked. */
const slower = 1.5, least = 1

/** What differs between two spans: outcome, attributes, and time if it is much. */
export function differences({ a, b }: Pair): string[] {
  if (!a) return ['only in the second']
  if (!b) return ['only in the first']
  const found: string[] = []
  const [x, y] = [a.duration_ns / 1e6, b.duration_ns / 1e6]
  if (Math.abs(x - y) >= least && Math.max(x, y) > slower * Math.min(x, y)) found.push(`${y > x ? 'slower' : 'faster'} by ${duration(Math.abs(x - y))}`)
  if ((a.failed ?? false) !== (b.failed ?? false)) found.push(b.failed ? `fails: ${firstLine(b.error ?? '')}` : 'does not fail')
  const names = new Set([...Object.keys(a.attributes ?? {}), ...Object.keys(b.attributes ?? {})])
  for (const name of names) {
    const [before, after] = [a.attributes?.[name], b.attributes?.[name]]
    if (before !== after && !unimportant.has(name)) found.push(`${name}: ${before ?? 'none'} → ${after ?? 'none'}`)
  }
  return found
}

/** Attributes that differ in every run, or that repeat another difference. */
const unimportant = new Set(['job.id', 'jsonrpc.request.id', 'mcp.session.id', 'network.peer.port', 'mcp.params', 'error.type'])

export function CompareTraces({ one, other }: { one: string; other: string }) {
  const load = (id: string) => (s: AbortSignal) => get<Trace>(`/api/v1/traces/${encodeURIComponent(id)}`, s)
  const a = useData(load(one), [one]), b = useData(load(other), [other])
  const error = a.error ?? b.error
  if (error) return <><p><a href="#/traces">All traces</a></p><p class="bad">{error.message}</p></>
  if (!a.data || !b.data) return <Skeleton />
  const rows = pairs(a.data.spans ?? [], b.data.spans ?? [])
  const changed = rows.filter((r) => differences(r).length > 0).length
  const longest = Math.max(a.data.duration_ns, b.data.duration_ns, 1000)
  return (
    <>
      <p><a href="#/traces">All traces</a></p>
      <div class="columns"><Side label="First" trace={a.data} /><Side label="Second" trace={b.data} /></div>
      <section class="panel" aria-label="Spans of both">
        <h2>{changed === 0 ? 'No span differs' : `${count(changed, 'span')} of ${rows.length} differ`}</h2>
        <div class="scroll">
          <table class="waterfall both" aria-label="Spans of both">
            <thead><tr><th>Span</th><th class="lane">First</th><th class="lane">Second</th><th>Difference</th></tr></thead>
            <tbody>{rows.map((r, i) => <Row key={i} pair={r} starts={[Date.parse(a.data!.start), Date.parse(b.data!.start)]} total={longest / 1e6 / laneShare} />)}</tbody>
          </table>
        </div>
      </section>
    </>
  )
}

function Side({ label, trace: t }: { label: string; trace: Trace }) {
  return (
    <section class="panel" aria-label={label}>
      <h2>{label}</h2>
      <p><a href={`#/traces/${t.trace_id}`}>{t.name}</a> {t.failed && <span class="bad">failed</span>}</p>
      <p class="soft small">{when(t.start)}, {duration(t.duration_ns / 1e6)}, {count(t.span_count, 'span')} <span class="mono">{t.trace_id.slice(0, 12)}</span></p>
    </section>
  )
}

function Row({ pair, starts, total }: { pair: Pair; starts: number[]; total: number }) {
  const found = differences(pair)
  return (
    <tr class={!pair.a ? 'added' : !pair.b ? 'gone' : found.length > 0 ? 'differs' : ''}>
      <td style={{ paddingLeft: `${0.6 + pair.depth}rem` }}>{pair.name}</td>
      {[pair.a, pair.b].map((span, i) => (
        <td key={i} class="lane">{span && <><Bar from={(Date.parse(span.start) - starts[i]) / total} size={span.duration_ns / 1e6 / total} bad={span.failed} /><span class="soft took">{duration(span.duration_ns / 1e6)}</span></>}</td>
      ))}
      <td class="small breaks">{found.map((d) => <div key={d}>{d}</div>)}</td>
    </tr>
  )
}
