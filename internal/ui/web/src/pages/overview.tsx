import { useEffect, useMemo, useState } from 'preact/hooks'
import { get, may } from '../api'
import { loadCalls, percent, rate, timesOf, type Report } from '../calls'
import { latestLines } from '../describe'
import { recent } from '../events'
import { count, duration, size } from '../format'
import { call } from '../mcp'
import { AddedNotes } from '../parts/addednotes'
import { Attention } from '../parts/attention'
import { Chart, LatencyChart } from '../parts/chart'
import { FirstSteps, useProgress } from '../parts/firststeps'
import { Hint } from '../parts/hint'
import { Lines } from '../parts/lines'
import { Nodes, useNodes } from '../parts/nodes'
import { Sparkline } from '../parts/sparkline'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { useData } from '../resource'
import { useFilter } from '../route'
import { byTrouble, type Upstream } from '../upstream'
import { waiting } from '../waiting'
import { Skeleton } from '../parts/skeleton'

const spans = { '1h': '1 h', '6h': '6 h', '24h': '24 h' }

/** How often the numbers are loaded. */
const refresh = 5000

export function Overview() {
  const [span, setSpan] = useFilter('span', '1h')
  const calls = useData((s) => loadCalls(span in spans ? span : '1h', s), [span], ['tool.call_ended'], (e) => e.data.namespace !== '', refresh)
  const servers = useData((s) => get<{ upstreams: Upstream[] }>('/api/v1/upstreams', s), [], ['upstream.', 'config.', 'tool.call_ended'], (e) => e.data.namespace !== '')
  const nodes = useNodes()
  const jobs = useData(async (s) => (may('mcp') ? (await call<{ total: number }>('job_list', { status: 'running', limit: 1 }, s)).total : 0), [], ['job.'], (e) => e.type !== 'job.progress')
  const list = useMemo(() => servers.data && byTrouble(servers.data.upstreams), [servers.data])
  const progress = useProgress(list?.length)
  const complete = list && calls.data && progress && waiting.value && (nodes.data ?? nodes.error) && (jobs.data ?? jobs.error) !== undefined
  const stage = useStages(3, Boolean(complete))
  const error = calls.error ?? servers.error
  const traffic = useMemo(() => list && list.length > 0 && calls.data && <Traffic report={calls.data} servers={list} jobs={jobs.data} stage={stage} />, [list, calls.data, jobs.data, stage])
  if (!error && !complete) return <Skeleton /> // all at once, so that nothing moves
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      <AddedNotes />
      {list && calls.data && progress && <FirstSteps servers={list.length} calls={calls.data.total.calls} progress={progress} added={servers.reload} />}
      {list && list.length > 0 && <Attention servers={list} />}
      {traffic && (
        <div class="segments" role="group" aria-label="Span">
          {Object.entries(spans).map(([key, text]) => <button key={key} type="button" aria-pressed={key === span} onClick={() => setSpan(key)}>{text}</button>)}
        </div>
      )}
      {traffic}
      {stage > 2 && <Nodes cluster={nodes.data} />}
      {stage > 2 && list && list.length > 0 && <section class="panel" aria-label="Events"><h2>Events</h2><Feed /></section>}
    </>
  )
}

/** What the servers do; `stage` says how much of it is drawn already. */
function Traffic({ report, servers, jobs, stage }: { report: Report; servers: Upstream[]; jobs?: number; stage: number }) {
  return (
    <>
      <Numbers report={report} servers={servers} jobs={jobs} />
      <div class="columns wide-first">
        <section class="panel filled" aria-label="Calls"><h2>Calls per second <span class="legend small soft"><i class="bar" /> calls <i class="bar bad" /> failed</span></h2><CallsChart report={report} /></section>
        <section class="panel" aria-label="Tools by calls"><h2>Busiest tools, last hour</h2><TopTools report={report} /></section>
      </div>
      {stage > 0 && (
        <section class="panel" aria-label="Latency"><h2>Latency: half of the calls (p50), and 95 of 100 (p95), were faster</h2><LatencyChart times={timesOf(report)} points={report.points} /></section>
      )}
      {stage > 1 && <section class="panel" aria-label="Servers"><h2>Servers</h2><Table label="Servers" rows={servers} columns={serverColumns(report)} id={(u) => u.namespace} first={10} /></section>}
    </>
  )
}

/** Counts up to `last` once `begun`, a step for each picture: what is further down is drawn later, so that no step takes long. */
function useStages(last: number, begun: boolean): number {
  const [stage, setStage] = useState(0)
  useEffect(() => {
    if (!begun || stage === last) return
    const timer = setTimeout(setStage, 0, stage + 1)
    return () => clearTimeout(timer)
  }, [begun, stage])
  return stage
}

function Numbers({ report: r, servers, jobs }: { report: Report; servers: Upstream[]; jobs?: number }) {
  const perSecond = r.points.map((p) => p.calls / r.step_secs)
  const last = perSecond.slice(-7, -1) // without the step that has just begun
  const now = last.reduce((a, b) => a + b, 0) / Math.max(last.length, 1)
  const up = servers.filter((u) => u.state === 'connected').length
  const asleep = servers.filter((u) => u.state === 'asleep').length
  return (
    <ul class="numbers">
      <li><a href="#/traces"><span>Calls per second</span><b>{rate(now)}</b><small>peak {rate(Math.max(...perSecond))}, {count(r.total.calls, 'call')}</small><Sparkline values={perSecond} label="calls per second" /></a></li>
      <li><a href="#/audit"><span>Errors</span><b class={r.total.errors > 0 ? 'bad' : ''}>{percent(r.total.calls ? r.total.errors / r.total.calls : 0)}</b><small>{r.total.errors} of {r.total.calls}</small><Sparkline values={r.points.map((p) => p.errors)} label="errors" /></a></li>
      <li><a href="#/traces"><span>Latency p50 / p95</span><b>{r.total.p50_ms === undefined ? '–' : `${duration(r.total.p50_ms)} / ${duration(r.total.p95_ms ?? 0)}`}</b><small>p99 {r.total.p99_ms === undefined ? '–' : duration(r.total.p99_ms)}</small><Sparkline values={r.points.map((p) => p.p95_ms ?? 0)} label="p95" /></a></li>
      <li><a href="#/servers"><span>Servers</span><b class={up + asleep < servers.length ? 'warn' : ''}>{up} of {servers.length}</b><small>connected{asleep > 0 && `, ${asleep} asleep`}</small></a></li>
      <li><a href="#/jobs?state=running"><span>Jobs</span><b>{jobs ?? '–'}</b><small>running</small></a></li>
    </ul>
  )
}

function CallsChart({ report: r }: { report: Report }) {
  return <Chart label="calls and errors per second" times={timesOf(r)} format={rate} lines={[
    { label: 'calls', values: r.points.map((p) => p.calls / r.step_secs), colour: '--accent', kind: 'area' },
    { label: 'failed', values: r.points.map((p) => p.errors / r.step_secs), colour: '--bad', kind: 'bars' },
  ]} />
}

function TopTools({ report: r }: { report: Report }) {
  if (r.tools.length === 0) return <Hint>No calls in the last hour.</Hint>
  return (
    <table aria-label="Tools by calls">
      <thead><tr><th>Tool</th><th class="num">Calls</th><th class="num">Errors</th><th class="num">Results</th></tr></thead>
      <tbody>
        {r.tools.slice(0, 6).map((t) => (
          <tr key={t.name}>
            <td class="breaks"><a href={`#/tools/${encodeURIComponent(t.name)}`}>{t.name}</a></td>
            <td class="num">{t.calls}</td><td class="num">{t.errors > 0 ? <span class="bad">{t.errors}</span> : 0}</td>
            <td class="num" title={`about ${Math.round(t.bytes / 4)} tokens`}>{size(t.bytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function serverColumns(r: Report): Column<Upstream>[] {
  const of = (u: Upstream) => r.servers[u.namespace]
  return [
    { name: 'State', value: (u) => u.state, cell: (u) => <State state={u.state} /> },
    { name: 'Name', value: (u) => u.namespace, cell: (u) => <a class="name" href={`#/servers/${encodeURIComponent(u.namespace)}`}>{u.namespace}</a> },
    { name: 'Address', value: (u) => u.endpoint, cell: (u) => <span class="soft mono oneline" title={u.endpoint}>{u.endpoint}</span>, class: 'address' },
    { name: 'Tools', value: (u) => u.tool_count, cell: (u) => u.tool_count, number: true },
    { name: 'Calls per minute', cell: (u) => <Sparkline values={of(u)?.points.map((p) => p.calls) ?? []} label={`${of(u)?.total.calls ?? 0} calls in the last hour`} /> },
    { name: 'p95', value: (u) => of(u)?.total.p95_ms ?? 0, cell: (u) => (of(u)?.total.p95_ms === undefined ? '' : duration(of(u).total.p95_ms!)), number: true },
    { name: 'Errors', value: (u) => of(u)?.total.errors ?? 0, cell: (u) => (of(u)?.total.errors ? <span class="bad">{of(u).total.errors}</span> : 0), number: true },
  ]
}

/** The most recent events. */
function Feed() {
  const last = latestLines(recent.value, 15)
  return last.length === 0 ? <Hint>No events yet.</Hint> : <Lines events={last} />
}
