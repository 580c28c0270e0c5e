// What the program of a server may reach, and what it has connected to.
import { get, may } from '../api'
import { ago, count, size } from '../format'
import { useData } from '../resource'
import { changeDefinition, loadDefinition } from '../setup'
import { attempt, upstreamPath, type Sandbox, type Upstream } from '../upstream'
import { Copy } from './copy'
import { Hint } from './hint'
import { State } from './state'
import { Table, type Column } from './table'
import { Skeleton } from './skeleton'

const levels: Record<string, string> = {
  off: 'It runs with the rights of the server: it may read and write all files and connect to everything.',
  open: 'It reads all files but credentials, and writes to its own folders only. It may connect to everything.',
  strict: 'It sees its own files only, and connects to the listed hosts only.',
}

export function SandboxFacts({ upstream: u, sandbox: s }: { upstream: Upstream; sandbox: Sandbox }) {
  const extra = [s.exec && 'execute files that it wrote', s.sockets && 'use Unix sockets'].filter(Boolean)
  return (
    <>
      <p><State state={s.level} /> <span class="soft">{levels[s.level] ?? 'It runs in a container.'}</span></p>
      <dl class="facts">
        <List name="May read" items={s.read} />
        <List name="May write" items={s.write} />
        <List name="May connect to" items={s.network ?? (s.level === 'strict' ? ['nothing'] : undefined)} />
        {extra.length > 0 && <><dt>May also</dt><dd>{extra.join(', ')}</dd></>}
        {s.secrets && <><dt>Uses without having them</dt><dd>{s.secrets.map((n) => <code key={n} class="at">{n}</code>)}</dd></>}
      </dl>
      {s.level !== 'off' && <Refusals upstream={u} />}
    </>
  )
}

interface Refusal {
  time: string
  action: string
  object: string
  allow?: string // the line of the configuration that would allow it
}

/** What the program was refused in its last run, each thing once. */
function Refusals({ upstream: u }: { upstream: Upstream }) {
  const { data } = useData((s) => get<{ refusals: Refusal[] }>(upstreamPath(u.namespace, '/refusals'), s).catch(() => undefined), [u.namespace], ['sandbox.refused', 'upstream.'], (e) => [e.data.name, e.data.upstream].includes(u.namespace))
  const each = new Map((data?.refusals ?? []).map((r) => [`${r.action} ${r.object}`, r]))
  if (each.size === 0) return null
  return (
    <>
      <h3>Refused in its last run</h3>
      <ul class="list" aria-label="Refused">
        {[...each.values()].slice(-20).map((r) => <li key={`${r.action} ${r.object}`} class="row"><span class="bad">{r.action}</span> <span class="mono breaks">{r.object}</span> {r.allow && <Copy text={r.allow}>Copy what allows it</Copy>}</li>)}
      </ul>
    </>
  )
}

function List({ name, items }: { name: string; items?: string[] }) {
  return items && items.length > 0 ? <><dt>{name}</dt><dd class="mono">{items.map((i) => <div key={i}>{i}</div>)}</dd></> : null
}

interface Connection {
  host: string
  port: number
  protocol: string
  outcome: string
  rule?: string
  reason?: string
  allow?: string // the entry of network that would allow it
  started: string
  took_ms: number
  sent: number
  received: number
  requests?: number
  secrets?: string[]
}

interface Host {
  host: string
  port: number
  connections: number
  refused?: number
  failed?: number
  sent: number
  received: number
  last: string
}

/** The network connections of a sandboxed program: by destination, and the last ones. */
export function Connections({ upstream: u, reload }: { upstream: Upstream; reload: () => void }) {
  const { data, error } = useData((s) => get<{ connections: Connection[]; hosts: Host[] }>(upstreamPath(u.namespace, '/connections'), s), [u.namespace], ['upstream.', 'tool.call_ended'], (e) => e.data.upstream === u.namespace || e.data.namespace === u.namespace, 10_000)
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <Skeleton />
  if (data.hosts.length + data.connections.length === 0) return <Hint>{u.sandbox?.level === 'strict' ? 'None since the start.' : 'Connections are seen in a strict sandbox only.'}</Hint>
  return (
    <>
      <Table label="Destinations" rows={data.hosts} columns={hostColumns} id={(h) => `${h.host}:${h.port}`} />
      <details><summary>{count(data.connections.length, 'recent connection')}</summary>
        <Table label="Recent connections" rows={data.connections.slice(0, 100)} columns={columns(u, reload)} id={(c) => `${c.started} ${c.host} ${c.port}`} />
      </details>
    </>
  )
}

const hostColumns: Column<Host>[] = [
  { name: 'Destination', cell: (h) => <span class="mono">{h.host}:{h.port}</span>, class: 'breaks' },
  { name: 'Connections', cell: (h) => h.connections, number: true },
  { name: 'Refused', cell: (h) => (h.refused ? <span class="bad">{h.refused}</span> : 0), number: true },
  { name: 'Failed', cell: (h) => (h.failed ? <span class="warn">{h.failed}</span> : 0), number: true },
  { name: 'Sent', cell: (h) => size(h.sent), number: true },
  { name: 'Received', cell: (h) => size(h.received), number: true },
  { name: 'Last', cell: (h) => ago(h.last), number: true },
]

function columns(u: Upstream, reload: () => void): Column<Connection>[] {
  return [
    { name: 'When', cell: (c) => ago(c.started) },
    { name: 'Destination', cell: (c) => <><span class="mono">{c.host}:{c.port}</span> <span class="soft small">{c.protocol}{c.requests ? `, ${count(c.requests, 'request')}` : ''}{c.secrets ? `, with ${c.secrets.join(', ')}` : ''}</span></>, class: 'breaks' },
    { name: 'Outcome', cell: (c) => <><State state={c.outcome} /> <span class="soft small">{c.reason ?? (c.rule && `allowed by ${c.rule}`)}</span>{c.allow && u.origin === 'config' && may('admin') && <button type="button" onClick={() => void allow(u, c.allow!).then(reload)}>Allow</button>}</> },
    { name: 'Sent', cell: (c) => size(c.sent), number: true },
    { name: 'Received', cell: (c) => size(c.received), number: true },
  ]
}

/** Adds a host to those that a program may connect to. */
async function allow(u: Upstream, entry: string): Promise<void> {
  await attempt(async () => {
    const { settings } = await loadDefinition(u.namespace)
    await changeDefinition(u.namespace, { settings: { network: [...((settings.network as string[] | undefined) ?? []), entry] } })
  }, `${u.namespace} may connect to ${entry} now`)
}
