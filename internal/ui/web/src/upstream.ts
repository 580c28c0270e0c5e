// Servers, as the administration API describes them, and actions on them.
import { post } from './api'
import { notify } from './parts/notices'
import type { ServerSettings } from './setup'

export interface Upstream {
  namespace: string
  endpoint: string
  package?: string // that is installed for it, with its version
  transport?: string
  protocol?: string
  state: string
  starting_secs?: number
  last_line?: string
  tool_count: number
  stale?: boolean
  error?: string
  hint?: string
  login?: string
  attempt?: number
  next_try_ms?: number
  warnings?: string[]
  call_count: number
  error_count: number
  in_flight: number
  last_tool?: string
  p50_ms?: number
  p99_ms?: number
  refusing_ms?: number
  origin: 'config' | 'startup' | 'added'
  configured_at?: string
  wanted: boolean
  editable: boolean
  by?: string
  changed?: string
  since?: string
  restarts: number
  first_connected?: string
  sandbox?: Sandbox
  settings?: ServerSettings // without secrets
}

/** What a program may reach. */
export interface Sandbox {
  level: string
  read?: string[]
  write?: string[]
  network?: string[]
  exec?: boolean
  sockets?: boolean
  secrets?: string[]
}

/** Does an action and shows a notice about its result, with a button if it can be taken back; reports whether it succeeded. Without `done` only a failure is shown. */
export async function attempt(action: () => Promise<unknown>, done = '', undo?: () => void): Promise<boolean> {
  try {
    await action()
    if (done) notify('good', done, undo)
    return true
  } catch (e) {
    notify('bad', (e as Error).message)
    return false
  }
}

/** The address of a server in the API. */
export function upstreamPath(namespace: string, action = ''): string {
  return `/api/v1/upstreams/${encodeURIComponent(namespace)}${action}`
}

/** Removes a server that was added here, or one of the configuration from its file; it can be taken back. */
export function remove(u: Upstream, changed: () => void): Promise<boolean> {
  const base = u.origin === 'config' ? `/api/v1/setup/servers/${encodeURIComponent(u.namespace)}` : upstreamPath(u.namespace)
  const back = () => void attempt(() => post(`${base}/restore`, undefined), `${u.namespace} is back`).then(changed)
  return attempt(() => post(base, undefined, 'DELETE'), u.origin === 'config' ? `${u.namespace} removed from ${u.configured_at ?? 'the configuration'}` : `${u.namespace} removed`, back)
}

/** Disconnects a server, which stays listed. */
export function disable(u: Upstream, changed: () => void): Promise<boolean> {
  return attempt(() => post(upstreamPath(u.namespace, '/disable'), undefined), `${u.namespace} disabled`, () => void restore(u).then(changed))
}

/** Ends the connection, and the program of the server, and connects again. */
export function restart(u: Upstream): Promise<boolean> {
  return attempt(() => post(upstreamPath(u.namespace, '/restart'), undefined), `${u.namespace}: restarted`)
}

export function restore(u: Upstream): Promise<boolean> {
  return attempt(() => post(upstreamPath(u.namespace, '/restore'), undefined), `${u.namespace} enabled`)
}

export function retry(u: Upstream): Promise<boolean> {
  return attempt(() => post(upstreamPath(u.namespace, '/retry'), undefined), `${u.namespace}: reconnecting`)
}

/** The states in the order of trouble: what needs a person first. */
const trouble = ['failed', 'needs_auth', 'untrusted', 'reconnecting', 'installing', 'starting', 'connecting', 'removed', 'connected', 'asleep']

/** How many servers have been tried, of those that are wanted, and what the others do; '' if all have. */
export function coming(list: Upstream[]): { done: number; all: number; others: string } {
  const wanted = list.filter((u) => u.wanted)
  const some = ['installing', 'starting', 'connecting'].map((state) => ({ state, n: wanted.filter((u) => u.state === state && !u.attempt).length })).filter((s) => s.n > 0)
  return { done: wanted.length - some.reduce((sum, s) => sum + s.n, 0), all: wanted.length, others: some.map((s) => `${s.n} ${s.state}`).join(', ') }
}

/** Servers with trouble first, then by name. */
export function byTrouble(list: Upstream[]): Upstream[] {
  return [...list].sort((a, b) => rank(a) - rank(b) || (a.namespace < b.namespace ? -1 : 1))
}

function rank(u: Upstream): number {
  const at = trouble.indexOf(u.state)
  return (at < 0 ? trouble.length : at) - (u.warnings?.length || u.refusing_ms !== undefined ? 0.5 : 0)
}
