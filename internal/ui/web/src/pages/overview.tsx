import { useMemo } from 'preact/hooks'
import { get, may } from '../api'
import { call } from '../mcp'
import { recent, type ServerEvent } from '../events'
import { useData } from '../resource'
import { count, duration } from '../format'
import { latestLines } from '../describe'
import { Hint } from '../parts/hint'
import { Lines } from '../parts/lines'
import { Nodes } from '../parts/nodes'
import { Since, Until } from '../parts/now'
import { Sparkline } from '../parts/sparkline'
import { State } from '../parts/state'
import { UpstreamLogin } from '../parts/upstreamlogin'
import { byTrouble, type Upstream } from '../upstream'

export function Overview() {
  const upstreams = useData(async (s) => ({ ...(await call<{ upstreams: Upstream[] }>('mcp_list_upstreams', {}, s)), loadedAt: Date.now() }), [], ['upstream.', 'tool.call_ended'], toUpstream)
  const jobs = useData((s) => call<{ total: number }>('job_list', { status: 'running', limit: 1 }, s), [], ['job.'], (e) => e.type !== 'job.progress')
  const approvals = useData((s) => call<{ approvals: unknown[] }>('approval_list', { status: 'pending' }, s), [], ['approval.'])
  const pins = useData((s) => (may('admin') ? awaitingReview(s) : Promise.resolve(0)), [], ['tool.held', 'tool.changed', 'pin.', 'upstream.'])
  const calls = useMemo(() => recent.value.filter((e) => e.type === 'tool.call_ended' && toUpstream(e)), [recent.value])
  const failures = calls.filter((e) => e.data.error)
  const list = upstreams.data?.upstreams
  return (
    <>
      <ul class="numbers">
        <li><b>{perSecond(calls)}</b> calls per second</li>
        <li><b>{list ? `${list.filter((u) => u.state === 'connected').length} of ${list.length}` : '…'}</b> <a href="#/servers">servers</a> connected</li>
        <li><b>{jobs.data?.total ?? '…'}</b> running <a href="#/jobs">jobs</a></li>
        <li><b class={approvals.data?.approvals.length ? 'warn' : ''}>{approvals.data?.approvals.length ?? '…'}</b> <a href="#/approvals">approvals</a> pending</li>
        {(pins.data ?? 0) > 0 && <li><b class="warn">{pins.data}</b> <a href="#/approvals">definitions</a> awaiting review</li>}
        <li><b class={failures.length ? 'bad' : ''}>{failures.length}</b> recent errors</li>
      </ul>
      <Nodes />
      <h2>Servers</h2>
      {upstreams.error && <p class="bad">{upstreams.error.message}</p>}
      {list?.length === 0 && <Hint>No servers yet. Add one with `luanette upstream add NAME COMMAND`, or one with a URL on the Servers page.</Hint>}
      <div class="cards">
        {list && byTrouble(list).map((u) => <Card key={u.namespace} upstream={u} loadedAt={upstreams.data!.loadedAt} calls={calls.filter((e) => namespaceOf(e) === u.namespace)} />)}
      </div>
      <h2>Recent errors</h2>
      {failures.length === 0 ? <Hint>None.</Hint> : <Lines events={failures.slice(-8).reverse()} />}
      <h2>Recent events</h2>
      <Feed />
    </>
  )
}

/** The number of definitions that await review. */
async function awaitingReview(signal: AbortSignal): Promise<number> {
  const [held, changed] = await Promise.all(['held', 'changed'].map((state) => get<{ total: number }>(`/api/v1/pins?state=${state}`, signal)))
  return held.total + changed.total
}

/** Whether a call went to an upstream. This page calls the server's own tools itself, so these do not count. */
function toUpstream(e: ServerEvent): boolean {
  return e.data.namespace !== ''
}

function perSecond(calls: ServerEvent[]): string {
  const since = Date.now() - 10_000
  let n = 0
  while (n < calls.length && Date.parse(calls[calls.length - 1 - n].time) > since) n++
  return (n / 10).toFixed(1)
}

function namespaceOf(e: ServerEvent): string {
  return String(e.data.namespace)
}

function Card({ upstream: u, loadedAt, calls }: { upstream: Upstream; loadedAt: number; calls: ServerEvent[] }) {
  const good = u.state === 'connected'
  const times = calls.slice(-40).map((e) => Number(e.data.duration_ms ?? 0))
  return (
    <article class="card upstream" aria-label={`upstream ${u.namespace}`}>
      <h3><a href={`#/servers/${encodeURIComponent(u.namespace)}`}>{u.namespace}</a> <State state={u.state} /></h3>
      <div class="soft mono oneline" title={u.endpoint}>{u.endpoint}</div>
      <dl>
        <dt>tools</dt><dd>{u.tool_count}{u.stale && ' (last known)'}</dd>
        <dt title="on the node that serves this page, since it started">calls</dt><dd>{u.call_count}, {u.error_count > 0 ? <span class="bad">{count(u.error_count, 'error')}</span> : 'no errors'}{u.in_flight > 0 && `, ${u.in_flight} in flight`}</dd>
        {u.p50_ms !== undefined && <><dt>p50</dt><dd>{duration(u.p50_ms)}</dd></>}
        {u.last_tool && <><dt>last tool</dt><dd>{u.last_tool}</dd></>}
        {!good && u.next_try_ms !== undefined && <><dt>next try</dt><dd><Until time={loadedAt + u.next_try_ms} />, after {count(u.attempt ?? 0, 'attempt')}</dd></>}
        {u.starting_secs !== undefined && <><dt>starting</dt><dd><Since time={loadedAt - u.starting_secs * 1000} />{u.last_line && <>, last line: <span class="mono">{u.last_line}</span></>}</dd></>}
        {u.refusing_ms !== undefined && <><dt>circuit</dt><dd class="warn">open, refuses calls for {duration(u.refusing_ms)}</dd></>}
      </dl>
      {!good && u.error && <p class="bad small">{u.error}</p>}
      {!good && u.hint && <Hint>{u.hint}</Hint>}
      {u.warnings?.map((w) => <p key={w} class="warn small">{w}</p>)}
      {u.login && <UpstreamLogin name={u.namespace} address={u.login} />}
      {times.length > 1 && <Sparkline values={times} label={`latency of the last ${times.length} calls, most recent ${duration(times[times.length - 1])}`} />}
    </article>
  )
}

/** The most recent events. */
function Feed() {
  const last = latestLines(recent.value, 15)
  return last.length === 0 ? <Hint>No events yet.</Hint> : <Lines events={last} />
}
