// What waits for a decision: the side bar counts it, the overview lists it.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { may } from './api'
import { isNeeded, loadLogins, loginEvents, type OwnLogin } from './logins'
import { call } from './mcp'
import { countAwaiting } from './pins'
import { useData } from './resource'

export interface Waiting {
  approvals: Asked[]
  definitions: number
  logins: OwnLogin[] // of the user, to servers that need it
}

/** A request for approval. */
export interface Asked {
  approval_id: string
  subject: string
  script: string
  job_id?: string
  plan: { action?: string; arguments?: Record<string, unknown> }[]
  created_at: string
}

/** Undefined until it is loaded. */
export const waiting = signal<Waiting | undefined>(undefined)

/** Keeps `waiting` up to date while the component is shown. */
export function useWaiting(): void {
  const asked = useData(async (s) => (may('mcp') ? (await call<{ approvals: Asked[] }>('approval_list', { status: 'pending' }, s)).approvals : []), [], ['approval.'])
  const pins = useData((s) => (may('admin') ? countAwaiting(s) : Promise.resolve(0)), [], ['tool.held', 'tool.changed', 'pin.', 'upstream.'])
  const logins = useData(loadLogins, [], loginEvents)
  const known = (asked.data ?? asked.error) && (pins.data ?? pins.error) !== undefined && (logins.data ?? logins.error)
  useEffect(() => {
    if (known) waiting.value = { approvals: asked.data ?? [], definitions: pins.data ?? 0, logins: (logins.data ?? []).filter(isNeeded) }
  }, [known, asked.data, pins.data, logins.data])
}
