import { get, may } from '../api'
import { count, duration } from '../format'
import { useData } from '../resource'
import { Config } from '../parts/config'
import { LiveSettings, useSettings } from '../parts/livesettings'
import { Nodes, useNodes } from '../parts/nodes'
import { State } from '../parts/state'
import { Skeleton } from '../parts/skeleton'

interface Health {
  status: string
  version: string
  uptime_secs?: number
  sessions?: { total: number; connected: number }
  upstreams?: Record<string, { state: string }>
  restart_needed?: string[]
  backup_failed?: string
}

export function Settings() {
  const nodes = useNodes()
  const live = useSettings(may('admin'))
  return (
    <>
      <section class="panel" aria-label="Health"><h2>Health</h2><HealthStatus /></section>
      <Nodes cluster={nodes.data} />
      {live.data && <section class="panel" aria-label="Settings that apply at once"><h2>Settings that apply at once</h2><LiveSettings shown={live.data} reload={live.reload} /></section>}
      <section class="panel" aria-label="Effective configuration"><h2>All settings</h2><Config file={live.data} /></section>
    </>
  )
}

function HealthStatus() {
  const { data: h, error } = useData((s) => get<Health>('/health', s), [], ['upstream.', 'config.'], undefined, 10_000)
  if (error) return <p class="bad">{error.message}</p>
  if (!h) return <Skeleton />
  const upstreams = Object.values(h.upstreams ?? {})
  return (
    <>
    <p>
      <State state={h.status} /> version {h.version}
      {h.uptime_secs !== undefined && `, up for ${duration(h.uptime_secs * 1000)}`}
      {h.sessions && `, ${count(h.sessions.connected, 'client')} connected`}
      {h.upstreams && `, ${upstreams.filter((u) => u.state === 'connected').length} of ${count(upstreams.length, 'upstream')} connected`}
    </p>
    {h.restart_needed && <p class="warn" role="status">These changed settings need a restart: {h.restart_needed.map((key) => <code key={key}>{key} </code>)}</p>}
    {h.backup_failed && <p class="bad" role="alert">The latest backup was not made: {h.backup_failed}</p>}
    </>
  )
}
