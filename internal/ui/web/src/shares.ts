// What owners share with others of their organisation.
import { get, may, me, post } from './api'
import { useFilter } from './route'

export type Kind = 'job' | 'schedule' | 'session' | 'artifact' | 'conversation'
export type Level = 'see' | 'use' | 'edit'

/** Whose a thing is, as lists tell it. */
export interface Owned {
  owner?: string // their name
  shared?: Level // what the user may do with a thing of somebody else
}

export interface Share {
  id: string
  kind: Kind
  thing: string
  title?: string // of the thing
  owner: string // their name
  to: string
  to_name: string
  may: Level
  by: string
  created: string
}

export interface Colleagues {
  people: { id: string; name: string; email?: string }[]
  roles: string[]
}

/** What each level permits with a thing, after "can". Each level has what the one before it permits. */
export const permits: Record<Kind, Partial<Record<Level, string>>> = {
  job: { see: 'look at its state, result, output and effects', edit: 'cancel and undo it' },
  schedule: { see: 'look at when it runs', edit: 'pause, resume and remove it' },
  session: { see: 'look at its functions', use: 'go on in a copy of their own', edit: 'reset and close it' },
  conversation: { see: 'read it, with its files', use: 'go on in a copy of their own' },
  artifact: { see: 'look at it, download it, and use it in scripts or run it, as themselves', edit: 'delete it, and restore it' },
}

const levels: Level[] = ['see', 'use', 'edit']

/** Whether the user is a person who signed in, not with a key. Only people share. */
export const isPerson = () => me.value?.id.startsWith('person:') === true && !me.value.client

/** Whether the user may share a thing: their own, or as an administrator of the organisation. */
export const mayShare = (t: Owned) => isPerson() && !t.shared && (!t.owner || t.owner === me.value!.name || may('org'))

/** Whether a thing is the user's own, or shared with them at this level. */
export const isPermitted = (t: Owned, level: Level) => !t.shared || levels.indexOf(t.shared) >= levels.indexOf(level)

/** Whether the user may delete a thing: their own, one that is nobody's, or one that they may edit. */
export const mayChange = (t: Owned) => (t.shared ? isPermitted(t, 'edit') : !t.owner || may('org') || may('admin'))

const path = '/api/v1/shares'
export const loadShares = async (kind: Kind, id: string, signal: AbortSignal) => (await get<{ shares: Share[] }>(`${path}?kind=${kind}&id=${encodeURIComponent(id)}`, signal)).shares
export const loadSharedWithMe = async (signal: AbortSignal) => (await get<{ shares: Share[] }>(`${path}?with=me`, signal)).shares
export const loadColleagues = (signal: AbortSignal) => get<Colleagues>('/api/v1/people/colleagues', signal)
export const addShare = (kind: Kind, id: string, to: string, level: Level) => post<Share>(path, { kind, id, to, may: level })
export const removeShare = (id: string) => post(`${path}/${encodeURIComponent(id)}`, undefined, 'DELETE')

/** The page on which a shared thing is shown. */
export function addressOf(s: Share): string {
  const id = encodeURIComponent(s.thing)
  return { job: `#/jobs/${id}`, schedule: '#/jobs', session: `#/playground?session=${id}`, artifact: `#/artifacts/${id}`, conversation: `#/chat/${id}` }[s.kind]
}

/** The filter of a list by whose its things are; it is in the address. */
export function useWhose(): { whose: string; setWhose: (v: string) => void; isShown: (t: Owned) => boolean } {
  const [whose, setWhose] = useFilter('whose')
  const isMine = (t: Owned) => !t.shared && (!t.owner || t.owner === me.value?.name)
  return { whose, setWhose, isShown: (t) => (whose === 'mine' ? isMine(t) : whose !== 'shared' || t.shared !== undefined) }
}
