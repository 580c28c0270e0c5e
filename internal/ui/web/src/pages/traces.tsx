import { get } from '../api'
import { clock, count, duration } from '../format'
import { useData } from '../resource'
import { useFilter } from '../route'
import { Hint } from '../parts/hint'
import { Waterfall, type Trace } from '../parts/waterfall'

/** Recent traces, or one of them as a waterfall. */
export function Traces({ rest }: { rest: string }) {
  return rest ? <OneTrace id={rest} /> : <AllTraces />
}

function AllTraces() {
  const [query, setQuery] = useFilter('find')
  const [shown, setShown] = useFilter('show', 'work')
  const [status, setStatus] = useFilter('status')
  const [slower, setSlower] = useFilter('slower')
  const { data, error } = useData((s) => get<{ traces: Trace[] }>('/api/v1/traces?limit=200', s), [], ['tool.', 'job.', 'chat.'])
  if (error) return <p class="bad">{error.message}</p>
  const list = data?.traces.filter((t) => (shown === 'all' || isWork(t)) && (!status || (status === 'failed') === t.failed) && t.duration_ns / 1e6 >= Number(slower || 0)
    && [t.trace_id, t.name, ...(t.tools ?? [])].some((text) => text.toLowerCase().includes(query.toLowerCase())))
  return (
    <>
      <div class="row filters">
        <label for="words">Tool, request or trace id</label>
        <input id="words" type="search" value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        <label for="trace-status">Status</label>
        <select id="trace-status" value={status} onChange={(e) => setStatus(e.currentTarget.value)}><option value="">all</option><option value="ok">ok</option><option value="failed">failed</option></select>
        <label for="slower">Slower than (ms)</label>
        <input id="slower" type="number" min="0" size={6} value={slower} onInput={(e) => setSlower(e.currentTarget.value)} />
        <label><input type="checkbox" checked={shown === 'all'} onChange={(e) => setShown(e.currentTarget.checked ? 'all' : 'work')} /> include lists, pings and requests of this page</label>
        <span class="soft" role="status">{list && `${list.length} of ${data!.traces.length}`}</span>
      </div>
      {list?.length === 0 && <Hint>No traces yet. Call a tool to record one.</Hint>}
      <table class="stack">
        <thead><tr><th>Time</th><th>Request</th><th>Tools called</th><th class="num">Took</th><th class="num">Spans</th></tr></thead>
        <tbody>
          {list?.map((t) => (
            <tr key={t.trace_id}>
              <td>{clock(t.start)}</td>
              <td><a href={`#/traces/${t.trace_id}`}>{t.name}</a> {t.failed && <span class="bad">failed</span>}</td>
              <td class="mono">{t.tools?.join(', ')}</td>
              <td class="num">{duration(t.duration_ns / 1e6)}</td>
              <td class="num">{t.span_count}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}

/** The tools that dashboards poll. Their traces are hidden unless the user asks for them. */
const polled = new Set(['mcp_list_upstreams', 'job_list', 'job_status', 'job_journal', 'job_logs', 'approval_list', 'search_tools', 'get_tool_definitions', 'script_search', 'script_get', 'script_history'])

/** Whether a trace is what a user asked for, not what clients and dashboards repeat. */
function isWork(t: Trace): boolean {
  const method = t.name.replace(/^(POST|GET) \S+ ?/, '')
  if (/^(tools|prompts|resources)\/(list|templates)|^(server\/discover|ping|initialize|notifications\/|completion\/|logging\/)/.test(method)) return t.failed
  return !(t.span_count <= 2 && !t.failed && polled.has(t.name.replace('tools/call ', '')))
}

function OneTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => get<Trace>(`/api/v1/traces/${encodeURIComponent(id)}`, s), [id])
  return (
    <>
      <p><a href="#/traces">All traces</a></p>
      {error && <p class="bad">{error.message}</p>}
      {data && (
        <>
          <p>{data.name}, {clock(data.start)}, {duration(data.duration_ns / 1e6)}, {count(data.span_count, 'span')}{data.tools && `, called ${data.tools.join(', ')}`}</p>
          <p class="soft mono">{data.trace_id}</p>
          <Waterfall trace={data} />
        </>
      )}
    </>
  )
}
