// What happens on the server, as it happens, and the last of it.
import { signal } from '@preact/signals'

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

/** Follows the server for as long as the page is open. */
export function follow(): void {
  const source = new EventSource('/api/v1/events?after=all')
  source.onopen = () => (online.value = true)
  source.onerror = () => (online.value = false)
  source.onmessage = (message) => {
    const e = JSON.parse(message.data as string) as ServerEvent
    if (e.type === 'event.missed') missed.value += Number(e.data.count ?? 0)
    waiting.push(e)
    if (!scheduled) {
      scheduled = true
      // Once a frame and not once an event: a thousand a second must not matter.
      requestAnimationFrame(deliver)
    }
  }
}

function deliver(): void {
  scheduled = false
  const batch = waiting
  waiting = []
  recent.value = recent.value.concat(batch).slice(-kept)
  for (const e of batch) for (const f of listeners) f(e)
}
