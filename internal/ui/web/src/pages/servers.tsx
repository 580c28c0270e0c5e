import { useState } from 'preact/hooks'
import { get, may } from '../api'
import { loadCalls, percent, timesOf } from '../calls'
import { latestLines } from '../describe'
import { recent, type ServerEvent } from '../events'
import { ago, count, duration } from '../format'
import { call } from '../mcp'
import { AddedNotes } from '../parts/addednotes'
import { Chart, LatencyChart } from '../parts/chart'
import { Hint } from '../parts/hint'
import { Lines } from '../parts/lines'
import { Since, Until } from '../parts/now'
import { Packages } from '../parts/packages'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { Connect, type Way } from '../parts/connect'
import { DefinitionForm } from '../parts/definitionform'
import { Connections, SandboxFacts } from '../parts/sandbox'
import { UpstreamForm } from '../parts/upstreamform'
import { LoginState, UpstreamLogin, YourLogin } from '../parts/upstreamlogin'
import { useHeading } from '../heading'
import { useData } from '../resource'
import { go, useFilter } from '../route'
import { ToolsOf } from './tools'
import { attempt, byTrouble, coming, disable, remove, restart, restore, retry, type Upstream } from '../upstream'

/** All servers, or one of them. */
export function Servers({ rest }: { rest: string }) {
  return rest ? <OneServer key={rest} name={rest} /> : <AllServers />
}

function AllServers() {
  const { data, error, reload } = useData((s) => get<{ upstreams: Upstream[] }>('/api/v1/upstreams', s), [], ['upstream.', 'config.'])
  const [find, setFind] = useFilter('find')
  const [add, setAdd] = useFilter('add')
  const list = data && byTrouble(data.upstreams).filter((u) => `${u.namespace} ${u.endpoint} ${u.state}`.toLowerCase().includes(find.toLowerCase()))
  return (
    <>
      <div class="row filters">
        <label for="server-words" class="hidden">Find a server</label>
        <input id="server-words" type="search" placeholder="Find a server" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <span class="soft" role="status">{list && `${list.length} of ${count(data.upstreams.length, 'server')}`}</span>
        {may('admin') && <button type="button" class="main" onClick={() => setAdd('url')}>Connect a server</button>}
      </div>
      {error && <p class="bad">{error.message}</p>}
      <AddedNotes />
      {data && <Coming list={data.upstreams} />}
      {data?.upstreams.length === 0 && <Hint>No servers yet. Add one here, with `luanette upstream add NAME COMMAND`, or in `luanette.toml`.</Hint>}
      {list && list.length > 0 && <section class="panel"><Table label="Servers" rows={list} columns={columns(reload)} id={(u) => u.namespace} /></section>}
      {data?.upstreams.some((u) => u.package) && may('admin') && <Packages />}
      {add && may('admin') && <Connect way={add as Way} close={() => { setAdd(''); reload() }} />}
    </>
  )
}

function columns(reload: () => void): Column<Upstream>[] {
  return [
    { name: 'State', value: (u) => u.state, cell: (u) => <State state={u.state} /> },
    { name: 'Name', value: (u) => u.namespace, cell: (u) => <a class="name" href={`#/servers/${encodeURIComponent(u.namespace)}`}>{u.namespace}</a> },
    { name: 'Address', value: (u) => u.endpoint, cell: (u) => <><span class="mono breaks">{u.endpoint}</span><Trouble upstream={u} /></> },
    { name: 'Tools', value: (u) => u.tool_count, cell: (u) => u.tool_count, number: true },
    { name: 'Calls', value: (u) => u.call_count, cell: (u) => u.call_count, number: true },
    { name: 'Errors', value: (u) => u.error_count, cell: (u) => (u.error_count > 0 ? <span class="bad">{u.error_count}</span> : 0), number: true },
    { name: 'p50', value: (u) => u.p50_ms ?? 0, cell: (u) => (u.p50_ms === undefined ? '' : duration(u.p50_ms)), number: true },
    { name: 'From', value: (u) => u.configured_at ?? u.origin, cell: (u) => <From upstream={u} /> },
    { name: '(Actions)', cell: (u) => <Actions upstream={u} reload={reload} brief />, class: 'row' },
  ]
}

/** A bar for all servers, while some have not been tried yet. */
function Coming({ list }: { list: Upstream[] }) {
  const { done, all, others } = coming(list)
  if (!others) return null
  return <p class="row" role="status" aria-label="Start"><progress max={all} value={done} aria-label="servers that have started" /> <span class="soft">{done} of {count(all, 'server')}; {others}</span></p>
}

function Trouble({ upstream: u }: { upstream: Upstream }) {
  if (u.starting_secs !== undefined && u.last_line) return <div class="soft small brief" title={u.last_line}>{u.last_line}</div>
  return u.wanted && u.state !== 'connected' && u.error ? <div class="bad small brief" title={u.error}>{u.error}</div> : null
}

/** What can be done with a server; `brief` leaves out what its own page has. */
function Actions({ upstream: u, reload, brief = false }: { upstream: Upstream; reload: () => void; brief?: boolean }) {
  const [editing, setEditing] = useState(false)
  const then = (action: Promise<boolean>) => void action.then(reload)
  const refresh = () => then(attempt(() => call('tools_refresh', { namespace: u.namespace }), `${u.namespace}: tools refreshed`))
  if (!may('admin')) return u.state === 'connected' && may('mcp') ? <button type="button" onClick={refresh}>Refresh</button> : null
  if (!u.wanted) return <><button type="button" class="main" onClick={() => then(restore(u))}>Enable</button>{(!brief || u.origin === 'added') && u.origin !== 'startup' && <button type="button" onClick={() => then(remove(u, reload))}>Remove</button>}</>
  return (
    <>
      {u.state === 'connected' ? <button type="button" onClick={refresh}>Refresh</button> : <button type="button" onClick={() => then(retry(u))}>Retry</button>}
      {!brief && <button type="button" onClick={() => then(restart(u))}>Restart</button>}
      {(u.editable || (u.origin === 'config' && !brief)) && <button type="button" onClick={() => setEditing(true)}>Edit</button>}
      <button type="button" onClick={() => then(disable(u, reload))}>Disable</button>
      {(!brief || u.origin === 'added') && u.origin !== 'startup' && <button type="button" onClick={() => then(remove(u, reload))}>Remove</button>}
      {editing && (u.editable ? <UpstreamForm upstream={u} close={() => { setEditing(false); reload() }} /> : <DefinitionForm upstream={u} close={() => { setEditing(false); reload() }} />)}
    </>
  )
}

/** Where the server was configured, or who added it. */
function From({ upstream: u }: { upstream: Upstream }) {
  if (u.origin === 'config') return <>{u.configured_at ? <code class="place" title={`${u.configured_at}: edit it there; the file is read again`}>{u.configured_at.replace(/^.*[/\\]/, '')}</code> : 'the configuration'}{!u.wanted && u.by && <div class="soft small">removed by {u.by}{u.changed && `, ${ago(u.changed)}`}</div>}</>
  if (u.origin === 'startup') return <code>startup.lua</code>
  return <>added{u.by && ` by ${u.by}`}{u.changed && <span class="soft"> {ago(u.changed)}</span>}</>
}

function OneServer({ name }: { name: string }) {
  const { data, error, reload } = useData(async (s) => ({ upstream: await get<Upstream>(`/api/v1/upstreams/${encodeURIComponent(name)}`, s), at: Date.now() }), [name], ['upstream.', 'config.', 'tool.call_ended'], (e) => e.data.upstream === name || e.data.namespace === name || e.type.startsWith('config.'))
  const mine = recent.value.filter((e) => e.data.upstream === name || e.data.namespace === name)
  const written = mine.filter((e) => e.type === 'upstream.stderr').slice(-200)
  const u = data?.upstream
  useHeading(name, { title: 'Servers', href: '#/servers' })
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {u && (
        <>
          <div class="row title"><State state={u.state} /><span class="row"><Actions upstream={u} reload={() => void gone(name).then((left) => (left ? go('servers') : reload()))} /></span></div>
          <Numbers name={name} />
          <div class="columns">
            <section class="panel" aria-label="State"><h2>State</h2><Facts upstream={u} at={data.at} /></section>
            {u.sandbox && <section class="panel" aria-label="Sandbox"><h2>Sandbox</h2><SandboxFacts upstream={u} sandbox={u.sandbox} /></section>}
            {!u.sandbox && <Written events={written} />}
          </div>
          {u.sandbox && <Written events={written} />}
          {u.sandbox && u.sandbox.level !== 'off' && <section class="panel" aria-label="Network connections"><h2>Network connections</h2><Connections upstream={u} reload={reload} /></section>}
          {u.package && u.origin === 'config' && may('admin') && <Packages only={name} />}
          <section class="panel" aria-label="Tools"><h2>Tools</h2><ToolsOf server={name} sum /></section>
          <section class="panel" aria-label="Events"><h2>Events</h2><Lines events={latestLines(mine.filter((e) => e.type !== 'upstream.stderr'), 30)} /></section>
        </>
      )}
    </>
  )
}

/** What the program of a server wrote to standard error. */
function Written({ events }: { events: ServerEvent[] }) {
  return <section class="panel" aria-label="Standard error"><h2>Standard error</h2>{events.length > 0 ? <pre class="tail" tabIndex={0}>{events.map((e) => `${String(e.data.line ?? '')}\n`)}</pre> : <Hint>Nothing among the recent events.</Hint>}</section>
}

/** Whether a server is not there any more. */
async function gone(name: string): Promise<boolean> {
  const { upstreams } = await get<{ upstreams: Upstream[] }>('/api/v1/upstreams')
  return !upstreams.some((u) => u.namespace === name)
}

/** Calls, errors and latency of the last hour. */
function Numbers({ name }: { name: string }) {
  const { data } = useData((s) => loadCalls('1h', s), [name], ['tool.call_ended'], (e) => e.data.namespace === name, 10_000)
  const r = data?.servers[name]
  if (!data) return null
  if (!r) return <section class="panel" aria-label="Calls"><h2>Calls, last hour</h2><Hint>None.</Hint></section>
  const times = timesOf(r)
  return (
    <div class="columns">
      <section class="panel" aria-label="Calls">
        <h2>Calls and errors per minute: {count(r.total.calls, 'call')}, {percent(r.total.calls ? r.total.errors / r.total.calls : 0)} failed</h2>
        <Chart label="calls and errors per minute" times={times} format={(v) => String(Math.round(v))} lines={[
          { label: 'calls', values: r.points.map((p) => p.calls), colour: '--accent', kind: 'area' },
          { label: 'errors', values: r.points.map((p) => p.errors), colour: '--bad', kind: 'bars' },
        ]} />
      </section>
      <section class="panel" aria-label="Latency">
        <h2>Latency: p50 {duration(r.total.p50_ms ?? 0)}, p95 {duration(r.total.p95_ms ?? 0)}, p99 {duration(r.total.p99_ms ?? 0)}</h2>
        <LatencyChart times={times} points={r.points} />
      </section>
    </div>
  )
}

function Facts({ upstream: u, at }: { upstream: Upstream; at: number }) {
  return (
    <>
      <dl class="facts">
        <dt>Address</dt><dd class="mono">{u.endpoint}</dd>
        {u.transport && <><dt>Transport</dt><dd>{u.transport}{u.protocol && `, protocol ${u.protocol}`}</dd></>}
        {u.package && <><dt>Package</dt><dd>{u.package}</dd></>}
        <dt>From</dt><dd>{u.configured_at ? <code class="breaks">{u.configured_at}</code> : <From upstream={u} />}</dd>
        {u.since && <><dt>{u.state === 'connected' ? 'Connected' : 'Since'}</dt><dd>{ago(u.since)}{u.first_connected && <span class="soft">, {u.restarts === 0 ? 'not restarted' : `${count(u.restarts, 'restart')} in ${duration(Date.now() - Date.parse(u.first_connected))}`}</span>}</dd></>}
        <LoginState upstream={u} />
        <YourLogin name={u.namespace} />
        <dt>Tools</dt><dd>{u.tool_count}{u.stale && ' (last known)'}</dd>
        <dt>Calls</dt><dd>{u.call_count}, {u.error_count > 0 ? <span class="bad">{count(u.error_count, 'error')}</span> : 'no errors'}{u.in_flight > 0 && `, ${u.in_flight} in flight`}</dd>
        {u.p50_ms !== undefined && <><dt>p50, p99</dt><dd>{duration(u.p50_ms)}, {duration(u.p99_ms ?? u.p50_ms)}</dd></>}
        {u.next_try_ms !== undefined && u.state !== 'connected' && <><dt>Next try</dt><dd><Until time={at + u.next_try_ms} />, after {count(u.attempt ?? 0, 'attempt')}</dd></>}
        {u.starting_secs !== undefined && <><dt>{u.state === 'installing' ? 'Installing' : 'Starting'}</dt><dd><Since time={at - u.starting_secs * 1000} />{u.last_line && <>, last line: <span class="mono">{u.last_line}</span></>}</dd></>}
        {u.refusing_ms !== undefined && <><dt>Circuit</dt><dd class="warn">open, refuses calls for {duration(u.refusing_ms)}</dd></>}
      </dl>
      {u.state !== 'connected' && u.error && <p class="bad small">{u.error}</p>}
      {u.state !== 'connected' && u.hint && <Hint>{u.hint}</Hint>}
      {u.warnings?.map((w) => <p key={w} class="warn small">{w}</p>)}
      {u.login && <UpstreamLogin name={u.namespace} address={u.login} />}
    </>
  )
}
