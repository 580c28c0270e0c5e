// What happens on the server, as it happens, and the last of it.
import { signal } from '@preact/signals'
import { may, whoAmI } from './api'
import { Gatherer } from './gather'

export interface ServerEvent {
  seq: number
  time: string
  type: string
  data: Record<string, unknown>
  node?: string // where it happened, when that is another node
  said?: { kind: 'good' | 'bad' | 'plain'; text: string } // the same in words
}

const kept = 2000
/** People read no faster, and a page that is drawn ten times a second has time for their keys. */
const beat = 100

/** The newest events, the newest last. A page that shows them follows this. */
export const recent = signal<ServerEvent[]>([])
/** How many events the server had to leave out because this page was too slow. */
export const missed = signal(0)
export const online = signal(false)

type Listener = (e: ServerEvent) => void
const listeners = new Set<Listener>()

/** Calls f for every event from now on; what it returns ends that. */
export function listen(f: Listener): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

const gatherer = new Gatherer<ServerEvent>(deliver, (go) => setTimeout(go, beat), kept)
let source: EventSource | undefined
let last = 'all'

/** Follows the server for as long as we may; begun again it goes on where it was. */
export function follow(): void {
  source?.close()
  if (!may('read')) return
  const stream = new EventSource(`/api/v1/events?after=${last}`)
  source = stream
  stream.onopen = () => (online.value = true)
  stream.onerror = () => {
    online.value = false
    if (stream.readyState !== EventSource.CLOSED) return // the browser tries again by itself
    setTimeout(async () => {
      if (source === stream && (await whoAmI()) !== null) follow()
    }, 1000)
  }
  stream.onmessage = (message) => {
    const e = JSON.parse(message.data as string) as ServerEvent
    last = message.lastEventId || last
    if (e.type === 'event.missed') missed.value += Number(e.data.count ?? 0)
    gatherer.add(e)
  }
}

/** Forgets what was seen: somebody else may sit down here. */
export function leave(): void {
  source?.close()
  source = undefined
  last = 'all'
  recent.value = []
  online.value = false
}

function deliver(batch: ServerEvent[], spilled: ServerEvent[]): void {
  recent.value = recent.value.concat(batch).slice(-kept)
  for (const f of listeners) {
    for (const e of spilled) f(e)
    for (const e of batch) f(e)
  }
}
