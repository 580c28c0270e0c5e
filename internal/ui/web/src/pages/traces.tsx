import { useState } from 'preact/hooks'
import { get } from '../api'
import { count, duration, when } from '../format'
import { useHeading } from '../heading'
import { Hint } from '../parts/hint'
import { Table, type Column } from '../parts/table'
import { Views } from '../parts/views'
import { Waterfall, type Trace } from '../parts/waterfall'
import { useData } from '../resource'
import { useFilter } from '../route'
import { CompareTraces } from '../traces/compare'

/** Recent traces, one of them as a waterfall, or two side by side. */
export function Traces({ rest }: { rest: string }) {
  const [id, other] = rest.split('/')
  if (other) return <CompareTraces one={id} other={other} />
  return id ? <OneTrace id={id} /> : <AllTraces />
}

/** How many traces are loaded; the server keeps about as many. */
const most = 1000

function AllTraces() {
  const [query, setQuery] = useFilter('find')
  const [shown, setShown] = useFilter('show', 'work')
  const [status, setStatus] = useFilter('status')
  const [slower, setSlower] = useFilter('slower')
  const [marked, setMarked] = useState<string[]>([])
  const { data, error } = useData((s) => get<{ traces: Trace[] }>(`/api/v1/traces?limit=${most}`, s), [], ['tool.', 'job.', 'chat.'])
  if (error) return <p class="bad">{error.message}</p>
  const list = data?.traces.filter((t) => (shown === 'all' || isWork(t)) && (!status || (status === 'failed') === t.failed) && t.duration_ns / 1e6 >= Number(slower || 0)
    && [t.trace_id, t.name, ...(t.tools ?? [])].some((text) => text.toLowerCase().includes(query.toLowerCase())))
  const mark = (id: string) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m.slice(-1), id]))
  return (
    <>
      <Views at="traces" />
      <div class="row filters">
        <label for="words" class="hidden">Tool, request or trace id</label>
        <input id="words" type="search" placeholder="Tool, request or trace id" size={26} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        <label for="trace-status" class="hidden">Status</label>
        <select id="trace-status" value={status} onChange={(e) => setStatus(e.currentTarget.value)}><option value="">ok and failed</option><option value="ok">ok</option><option value="failed">failed</option></select>
        <label for="slower">Slower than (ms)</label>
        <input id="slower" class="short" type="number" min="0" value={slower} onInput={(e) => setSlower(e.currentTarget.value)} />
        <label><input type="checkbox" checked={shown === 'all'} onChange={(e) => setShown(e.currentTarget.checked ? 'all' : 'work')} /> include lists, pings and requests of this page</label>
        {marked.length === 2 && <a class="button" href={`#/traces/${marked[0]}/${marked[1]}`}>Compare both</a>}
        <span class="soft" role="status">{list && `${list.length} of ${data!.traces.length}`}</span>
      </div>
      {list?.length === 0 && <Hint>{query || status || slower ? 'No trace matches the filters.' : 'No traces yet. Call a tool to record one.'}</Hint>}
      {list && list.length > 0 && <div class="panel"><Table label="Traces" rows={list} columns={columns(marked, mark)} id={(t) => t.trace_id} /></div>}
    </>
  )
}

function columns(marked: string[], mark: (id: string) => void): Column<Trace>[] {
  return [
    { name: '(Compare)', cell: (t) => <input type="checkbox" aria-label={`compare ${t.trace_id}`} title="Mark two traces to compare them" checked={marked.includes(t.trace_id)} onChange={() => mark(t.trace_id)} /> },
    { name: 'Time', value: (t) => Date.parse(t.start), cell: (t) => when(t.start) },
    { name: 'Request', value: (t) => t.name, cell: (t) => <><a href={`#/traces/${t.trace_id}`}>{t.name}</a> {t.failed && <span class="state bad">failed</span>}</> },
    { name: 'Tools called', value: (t) => t.tools?.join() ?? '', cell: (t) => t.tools?.join(', '), class: 'mono breaks' },
    { name: 'Took', value: (t) => t.duration_ns, cell: (t) => duration(t.duration_ns / 1e6), number: true },
    { name: 'Spans', value: (t) => t.span_count, cell: (t) => t.span_count, number: true },
  ]
}

/** The tools that dashboards poll. Their traces are hidden unless the user asks for them. */
const polled = new Set(['mcp_list_upstreams', 'job_list', 'job_stats', 'job_status', 'job_journal', 'job_logs', 'schedule_list', 'approval_list', 'search_tools', 'get_tool_definitions', 'script_search', 'script_get', 'script_history', 'lua_help', 'lua_describe'])

/** What the timeline shows; it reads it every few seconds. */
const timeline = new Set(['hootenanny.garden_projects', 'hootenanny.garden_query'])

/** Whether a trace is what a user asked for, not what clients and dashboards repeat. A dashboard that is closed ends its requests, which then count as failed. */
function isWork(t: Trace): boolean {
  const method = t.name.replace(/^(POST|GET) \S+ ?/, '')
  if (/^(tools|prompts|resources)\/(list|templates)|^(server\/discover|ping|initialize|notifications\/|completion\/|logging\/)/.test(method)) return t.failed
  const name = t.name.replace('tools/call ', '')
  return !(t.span_count <= 2 && polled.has(name)) && !(name === 'call_tool_read' && t.tools?.every((tool) => timeline.has(tool)))
}

function OneTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => get<Trace>(`/api/v1/traces/${encodeURIComponent(id)}`, s), [id])
  useHeading(data?.name ?? (error && 'Not here any more'), { title: 'All calls', href: '#/traces' })
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {data && (
        <>
          <div class="row title">{data.failed && <span class="state bad">failed</span>}<span class="soft">{when(data.start)}, {duration(data.duration_ns / 1e6)}, {count(data.span_count, 'span')}</span></div>
          <p class="soft mono breaks">{data.trace_id}{data.tools && `, called ${data.tools.join(', ')}`}</p>
          <section class="panel" aria-label="Spans"><Waterfall trace={data} /></section>
        </>
      )}
    </>
  )
}
