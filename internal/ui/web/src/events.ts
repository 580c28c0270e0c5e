// The stream of the server's events, and the most recent ones.
import { signal } from '@preact/signals'
import { loadMe, may, opened, urlOf } from './api'
import { Batcher } from './batch'

export interface ServerEvent {
  seq: number
  time: string
  type: string
  data: Record<string, unknown>
  node?: string // set if another node published it
  said?: { kind: 'good' | 'bad' | 'plain'; text: string } // a description for people
}

const maxRecent = 2000
/** How many earlier events a new page asks for. */
const enough = 200
/** Milliseconds between two updates: often enough for reading, and leaves time for input. */
const batchInterval = 100

/** The most recent events, newest last. */
export const recent = signal<ServerEvent[]>([])
/** How many events the server dropped because this page was too slow. */
export const missed = signal(0)
export const online = signal(false)

/** Whether the events that are delivered are the first ones, most of which happened before the page was opened. */
let first = true

/** Whether an event happened before the page loaded its data. The time of that is exact to a second. */
export function isOld(e: ServerEvent): boolean {
  return first && Date.parse(e.time) < opened - 1000
}

type Listener = (e: ServerEvent) => void
const listeners = new Set<Listener>()

/** Calls f for every event from now on; the returned function stops it. */
export function listen(f: Listener): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

const batcher = new Batcher<ServerEvent>(deliver, (flush) => setTimeout(flush, batchInterval), maxRecent)
let source: EventSource | undefined
let last = 'all'

/** Opens the event stream, after the last event received. */
export function connect(): void {
  source?.close()
  if (!may('read')) return
  const stream = new EventSource(urlOf(`/api/v1/events?after=${last}&newest=${enough}`))
  source = stream
  stream.onopen = () => (online.value = true)
  stream.onerror = () => {
    online.value = false
    if (stream.readyState !== EventSource.CLOSED) return // the browser reconnects by itself
    setTimeout(async () => {
      if (source === stream && (await loadMe()) !== null) connect()
    }, 1000)
  }
  stream.onmessage = (message) => {
    const e = JSON.parse(message.data as string) as ServerEvent
    last = message.lastEventId || last
    if (e.type === 'event.missed') missed.value += Number(e.data.count ?? 0)
    batcher.add(e)
  }
}

/** Closes the stream and clears the events, for the next user of this browser. */
export function disconnect(): void {
  source?.close()
  source = undefined
  last = 'all'
  first = true
  recent.value = []
  online.value = false
}

function deliver(batch: ServerEvent[], dropped: ServerEvent[]): void {
  recent.value = recent.value.concat(batch).slice(-maxRecent)
  for (const f of listeners) {
    for (const e of dropped) f(e)
    for (const e of batch) f(e)
  }
  first = false
}
