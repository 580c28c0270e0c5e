// Notices about recent events, shown on every page for a few seconds.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { listen, type ServerEvent } from '../events'
import { describe } from '../describe'

interface Notice {
  id: number
  kind: 'good' | 'bad' | 'plain'
  text: string
  undo?: () => void
}

/** How long a notice with a button that takes something back is shown. */
const undoable = 20_000

const shown = signal<Notice[]>([])
let last = 0

function hide(id: number): void {
  shown.value = shown.value.filter((n) => n.id !== id)
}

/** Shows a notice for a few seconds; longer if it has a button that takes the action back. */
export function notify(kind: Notice['kind'], text: string, undo?: () => void): void {
  const id = ++last
  shown.value = [...shown.value.slice(-3), { id, kind, text, undo }]
  setTimeout(() => hide(id), undo ? undoable : 6000)
}

/** Does later what cannot be taken back: until then a notice undoes it. It is done at once when the page is left. */
export function deferred(said: string, act: () => void, undo: () => void): void {
  const end = () => {
    clearTimeout(timer)
    removeEventListener('pagehide', now)
  }
  const now = () => {
    end()
    act()
  }
  const timer = setTimeout(now, undoable)
  addEventListener('pagehide', now)
  notify('good', said, () => {
    end()
    undo()
  })
}

/** Event types that cause a notice. */
const noticed = new Set(['upstream.connected', 'upstream.needs_auth', 'upstream.removed', 'script.published', 'approval.requested', 'tool.changed', 'tool.shadowed', 'node.gone', 'node.joined'])

function isNoticed(e: ServerEvent): boolean {
  if (e.type === 'upstream.reconnecting') return Number(e.data.attempt ?? 1) === 1
  if (e.type === 'job.finished') return e.data.status === 'failed'
  return noticed.has(e.type)
}

export function Notices() {
  useEffect(() => {
    const opened = Date.now()
    return listen((e) => {
      if (Date.parse(e.time) < opened) return // older than this page
      if (!isNoticed(e)) return
      const { kind, text } = describe(e)
      notify(kind, e.node ? `${text} (on ${e.node})` : text)
    })
  }, [])
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.value.map((n) => <p key={n.id} class={n.kind}>{n.text}{n.undo && <> <button type="button" onClick={() => { hide(n.id); n.undo!() }}>Undo</button></>}</p>)}
    </div>
  )
}
