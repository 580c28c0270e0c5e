// Definitions of tools that administrators review, and decisions about them.
import { get, post } from './api'
import { notify } from './parts/notices'
import { attempt } from './upstream'

export interface Pin {
  id: string
  upstream: string
  kind: string
  name: string
  state: string
  digest: string
  server: string
  flags?: { code: string; path: string; text: string }[]
  changed: string
  decided?: string
  by?: string
}

export interface PinDetail extends Pin {
  definition: unknown
  approved_definition?: unknown
  diff?: { path: string; old?: string; new?: string }[]
}

/** The types of events after which the definitions may be others. */
export const pinEvents = ['tool.held', 'tool.changed', 'tool.flagged', 'pin.', 'upstream.']

/** The definitions that await review: those that changed first. */
export async function loadAwaiting(signal: AbortSignal): Promise<Pin[]> {
  const [changed, held] = await Promise.all(['changed', 'held'].map((state) => get<{ pins: Pin[] }>(`/api/v1/pins?state=${state}`, signal)))
  return [...changed.pins, ...held.pins]
}

/** How many definitions await review. */
export async function countAwaiting(signal: AbortSignal): Promise<number> {
  const lists = await Promise.all(['changed', 'held'].map((state) => get<{ total: number }>(`/api/v1/pins?state=${state}&limit=0`, signal)))
  return lists.reduce((n, l) => n + l.total, 0)
}

export async function loadDecided(signal: AbortSignal): Promise<Pin[]> {
  return (await get<{ pins: Pin[] }>('/api/v1/pins?recent=20', signal)).pins
}

export function loadPin(id: string, signal: AbortSignal): Promise<PinDetail> {
  return get<PinDetail>(`/api/v1/pins/${encodeURIComponent(id)}`, signal)
}

/** Approves or refuses the definition that was shown. `changed` is called when that is done. */
export async function decidePin(p: Pin, decision: 'approve' | 'refuse', changed: () => void): Promise<void> {
  await attempt(() => post(`/api/v1/pins/${encodeURIComponent(p.id)}/decide`, { decision, digest: p.digest }), `${p.upstream}.${p.name}: ${decision === 'approve' ? 'approved' : 'refused'}`)
  changed()
}

/** Approves all definitions of a server that the scanner did not flag. */
export async function approveAll(upstream: string, changed: () => void): Promise<void> {
  try {
    const { approved, left } = await post<{ approved: unknown[]; left: unknown[] }>('/api/v1/pins/approve', { upstream, flagged: false })
    notify('good', `${approved.length} approved, ${left.length} not approved`)
  } catch (e) {
    notify('bad', (e as Error).message)
  }
  changed()
}
