// What happens on the server, as it happens, and the last of it.
import { signal } from '@preact/signals'
import { whoAmI } from './api'

export interface ServerEvent {
  seq: number
  time: string
  type: string
  data: Record<string, unknown>
}

const kept = 2000

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

let waiting: ServerEvent[] = []
let scheduled = false
let source: EventSource | undefined
let last = 'all'

/** Follows the server for as long as we may; begun again it goes on where it was. */
export function follow(): void {
  source?.close()
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
    waiting.push(e)
    if (!scheduled) {
      scheduled = true
      // Once a frame and not once an event: a thousand a second must not matter.
      requestAnimationFrame(deliver)
    }
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

function deliver(): void {
  scheduled = false
  const batch = waiting
  waiting = []
  recent.value = recent.value.concat(batch).slice(-kept)
  for (const e of batch) for (const f of listeners) f(e)
}
