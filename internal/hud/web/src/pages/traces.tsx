import { get } from '../api'
import { clock, count, duration } from '../format'
import { useData } from '../resource'
import { Waterfall, type Trace } from '../parts/waterfall'

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
