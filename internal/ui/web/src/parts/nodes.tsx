// The nodes that share one database.
import { get } from '../api'
import { ago, count } from '../format'
import { useData } from '../resource'
import { State } from './state'

export interface Node {
  id: string
  name: string
  state: string
  address?: string
  version?: string
  started: string
  heard: string
  load?: { calls_per_minute: number; in_flight: number; jobs: number; sessions: number; streams: number; cpu_percent: number; memory_mb: number }
}

export interface Cluster {
  node: string // this one
  nodes: Node[]
}

export function useNodes() {
  return useData((s) => get<Cluster>('/api/v1/nodes', s), [], ['node.'], undefined, 10_000)
}

/** The list of nodes, if there are several. */
export function Nodes({ cluster: data }: { cluster?: Cluster }) {
  if (!data || data.nodes.length < 2) return null
  const loaded = data.nodes.some((n) => n.load !== undefined)
  return (
    <>
      <h2>Nodes</h2>
      <div class="scroll">
        <table class="stack" aria-label="Nodes">
          <thead><tr><th>Node</th><th>State</th><th>Address</th><th>Version</th><th>Up</th>{loaded && <th>Load</th>}</tr></thead>
          <tbody>
            {data.nodes.map((n) => (
              <tr key={n.id}>
                <td><strong>{n.name}</strong>{n.id === data.node && <span class="soft"> this node</span>}</td>
                <td><State state={n.state} />{n.state === 'silent' && <span class="soft"> last seen {ago(n.heard)}</span>}</td>
                <td class="mono">{n.address}</td>
                <td>{n.version}</td>
                <td>{ago(n.started).replace(' ago', '')}</td>
                {loaded && <td class="soft">{n.load && [
                  `${count(n.load.calls_per_minute, 'call')} per minute`, n.load.in_flight > 0 && `${n.load.in_flight} in flight`, count(n.load.jobs, 'job'), count(n.load.sessions, 'session'),
                  `${Math.round(n.load.cpu_percent)} % cpu`, `${Math.round(n.load.memory_mb)} MB`,
                ].filter(Boolean).join(', ')}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
