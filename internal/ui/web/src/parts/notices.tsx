// Short words about what has just happened, for those who look elsewhere.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { listen, type ServerEvent } from '../events'
import { inWords } from '../words'

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

/** What those who look elsewhere are told; the rest is in the list of what happened. */
const telling = new Set(['upstream.connected', 'upstream.needs_auth', 'upstream.removed', 'script.published', 'approval.requested', 'tool.changed', 'tool.shadowed', 'node.gone', 'node.joined'])

function worth(e: ServerEvent): boolean {
  if (e.type === 'upstream.reconnecting') return Number(e.data.attempt ?? 1) === 1
  if (e.type === 'job.finished') return e.data.status === 'failed'
  return telling.has(e.type)
}

export function Notices() {
  useEffect(() => {
    const opened = Date.now()
    return listen((e) => {
      if (Date.parse(e.time) < opened) return // from before: nobody needs to be told
      if (!worth(e)) return
      const said = inWords(e)
      notify(said.kind, e.node ? `${said.text} (on ${e.node})` : said.text)
    })
  }, [])
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.value.map((n) => <p key={n.id} class={n.kind}>{n.text}</p>)}
    </div>
  )
}
