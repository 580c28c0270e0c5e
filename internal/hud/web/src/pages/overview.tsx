import { useEffect, useMemo, useState } from 'preact/hooks'
import { get, may } from '../api'
import { call } from '../mcp'
import { recent, type ServerEvent } from '../events'
import { useData } from '../resource'
import { clock, count, duration } from '../format'
import { Sparkline } from '../parts/sparkline'
import { UpstreamLogin } from '../parts/upstreamlogin'

interface Upstream {
  namespace: string
  endpoint: string
  state: string
  tool_count: number
  error?: string
  next_try_ms?: number
  attempt?: number
  login?: string
  call_count: number
  error_count: number
  last_tool?: string
  p50_ms?: number
}

export function Overview() {
  const upstreams = useData(async (s) => ({ ...(await call<{ upstreams: Upstream[] }>('mcp_list_upstreams', {}, s)), asked: Date.now() }), [], ['upstream.', 'tool.call_ended'], toUpstream)
  const jobs = useData((s) => call<{ total: number }>('job_list', { status: 'running' }, s), [], ['job.'])
  const approvals = useData((s) => call<{ approvals: unknown[] }>('approval_list', { status: 'pending' }, s), [], ['approval.'])
  const held = useData((s) => (may('admin') ? waiting(s) : Promise.resolve(0)), [], ['tool.held', 'tool.changed', 'pin.', 'upstream.'])
  const calls = useMemo(() => recent.value.filter((e) => e.type === 'tool.call_ended' && toUpstream(e)), [recent.value])
  const failures = calls.filter((e) => e.data.error).slice(-8).reverse()
  return (
    <>
      <ul class="numbers">
        <li><b>{perSecond(calls)}</b> calls per second</li>
        <li><b>{upstreams.data?.upstreams.length ?? '…'}</b> upstreams</li>
        <li><b>{jobs.data?.total ?? '…'}</b> running jobs</li>
        <li><b class={approvals.data?.approvals.length ? 'warn' : ''}>{approvals.data?.approvals.length ?? '…'}</b> <a href="#/approvals">approvals</a> waiting</li>
        {(held.data ?? 0) > 0 && <li><b class="warn">{held.data}</b> <a href="#/approvals">definitions</a> held</li>}
        <li><b class={failures.length ? 'bad' : ''}>{calls.filter((e) => e.data.error).length}</b> recent errors</li>
      </ul>
      <h2>Upstreams</h2>
      {upstreams.error && <p class="bad">{upstreams.error.message}</p>}
      {upstreams.data?.upstreams.length === 0 && <p class="soft">None yet. `luanette upstream add NAME URL` adds one, and so does the page Settings.</p>}
      <div class="cards">
        {upstreams.data?.upstreams.map((u) => <Card key={u.namespace} upstream={u} asked={upstreams.data!.asked} calls={calls.filter((e) => spaceOf(e) === u.namespace)} />)}
      </div>
      <h2>Recent errors</h2>
      {failures.length === 0 ? <p class="soft">None.</p> : (
        <ul>{failures.map((e) => <li key={e.seq}>{clock(e.time)} <code>{toolOf(e)}</code> <span class="bad">{String(e.data.error)}</span></li>)}</ul>
      )}
      <h2>Latest</h2>
      <Feed />
    </>
  )
}

/** How many definitions wait for somebody to look at them. */
async function waiting(signal: AbortSignal): Promise<number> {
  const [held, changed] = await Promise.all(['held', 'changed'].map((state) => get<{ total: number }>(`/api/v1/pins?state=${state}`, signal)))
  return held.total + changed.total
}

/** Our own tools are left out: this page calls them, and would watch itself for ever. */
function toUpstream(e: ServerEvent): boolean {
  return e.data.namespace !== ''
}

function perSecond(calls: ServerEvent[]): string {
  const since = Date.now() - 10_000
  return (calls.filter((e) => Date.parse(e.time) > since).length / 10).toFixed(1)
}

function spaceOf(e: ServerEvent): string {
  return String(e.data.namespace)
}

function toolOf(e: ServerEvent): string {
  return `${spaceOf(e)}.${String(e.data.tool)}`
}

/** The time until something, second by second. */
function Until({ time }: { time: number }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return <>{time > now ? `in ${duration(time - now)}` : 'now'}</>
}

function Card({ upstream: u, asked, calls }: { upstream: Upstream; asked: number; calls: ServerEvent[] }) {
  const good = u.state === 'connected'
  const times = calls.slice(-40).map((e) => Number(e.data.duration_ms ?? 0))
  return (
    <article class="card" aria-label={`upstream ${u.namespace}`}>
      <h3>{u.namespace} <span class={good ? 'good' : u.state === 'asleep' ? 'soft' : 'bad'}>{u.state}</span></h3>
      <div class="soft mono">{u.endpoint}</div>
      <dl>
        <dt>tools</dt><dd>{u.tool_count}</dd>
        <dt>calls</dt><dd>{u.call_count}, {count(u.error_count, 'error')}{u.p50_ms !== undefined && `, half within ${duration(u.p50_ms)}`}</dd>
        {u.last_tool && <><dt>last</dt><dd>{u.last_tool}</dd></>}
        {!good && u.next_try_ms !== undefined && <><dt>next try</dt><dd><Until time={asked + u.next_try_ms} />, after {count(u.attempt ?? 0, 'attempt')}</dd></>}
      </dl>
      {!good && u.error && <p class="bad">{u.error}</p>}
      {u.login && <UpstreamLogin name={u.namespace} address={u.login} />}
      {times.length > 1 && <Sparkline values={times} label={`latency of the last ${times.length} calls, ${duration(times[times.length - 1])} at last`} />}
    </article>
  )
}

/** The last things that happened, in words. */
function Feed() {
  const last = recent.value.filter((e) => e.type !== 'tool.call_started' && (e.type !== 'tool.call_ended' || toUpstream(e))).slice(-15).reverse()
  if (last.length === 0) return <p class="soft">Nothing has happened yet.</p>
  return (
    <div class="scroll">
      <table>
        <tbody>
          {last.map((e) => (
            <tr key={e.seq}><td class="soft">{clock(e.time)}</td><td>{e.type}</td><td class="mono soft">{brief(e)}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function brief(e: ServerEvent): string {
  const text = e.type === 'log.line' ? `${String(e.data.level)} ${String(e.data.message)}` : JSON.stringify(e.data)
  return text.length > 160 ? `${text.slice(0, 160)}…` : text
}
