// Short words about what has just happened, for those who look elsewhere.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { listen, type ServerEvent } from '../events'

interface Notice {
  id: number
  kind: 'good' | 'bad' | 'plain'
  text: string
}

const shown = signal<Notice[]>([])
let last = 0

/** Shows a notice for a few seconds. */
export function notify(kind: Notice['kind'], text: string): void {
  const id = ++last
  shown.value = [...shown.value.slice(-3), { id, kind, text }]
  setTimeout(() => (shown.value = shown.value.filter((n) => n.id !== id)), 6000)
}

/** What an event is worth telling, if it is. */
function worth(e: ServerEvent): [Notice['kind'], string] | undefined {
  const d = e.data
  switch (e.type) {
    case 'upstream.connected':
      return ['good', `${String(d.upstream)} is connected`]
    case 'upstream.reconnecting':
      return Number(d.attempt ?? 1) === 1 ? ['bad', `${String(d.upstream)} is away`] : undefined
    case 'upstream.needs_auth':
      return ['bad', `${String(d.upstream)} wants a login`]
    case 'upstream.removed':
      return ['plain', `${String(d.upstream)} was removed`]
    case 'script.published':
      return ['good', `${String(d.name)} is a tool now`]
    case 'approval.requested':
      return ['bad', 'a script waits for an approval']
    case 'tool.changed':
      return ['bad', `${String(d.upstream ?? d.namespace)}.${String(d.name ?? d.tool)} is held: its definition has changed`]
    case 'tool.shadowed':
      return ['bad', `${String(d.upstream ?? d.namespace)}.${String(d.name ?? d.tool)} is refused: its name passes for another's`]
    case 'node.gone':
      return ['bad', `node ${String(d.name)} is gone`]
    case 'node.joined':
      return ['plain', `node ${String(d.name)} has joined`]
    case 'job.finished':
      return d.status === 'failed' ? ['bad', `job ${String(d.name ?? d.job_id)} failed`] : undefined
  }
}

export function Notices() {
  useEffect(() => {
    const opened = Date.now()
    return listen((e) => {
      if (Date.parse(e.time) < opened) return // from before: nobody needs to be told
      const told = worth(e)
      if (told) notify(...told)
    })
  }, [])
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.value.map((n) => <p key={n.id} class={n.kind}>{n.text}</p>)}
    </div>
  )
}
