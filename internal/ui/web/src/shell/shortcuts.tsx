// Keys that work on every page, and the list of them.
import { useLayoutEffect } from 'preact/hooks'
import { go } from '../route'
import { visiblePages } from './pages'

export interface Actions {
  palette: () => void
  help: () => void
}

/** The keys of the page that is shown. */
let pageKeys: Record<string, () => void> = {}

/** Keys that work while the component is shown, unless somebody types. A key that is held acts once. */
export function usePageKeys(keys: Record<string, () => void>): void {
  useLayoutEffect(() => { // with the picture: what is seen can be decided
    pageKeys = keys
    return () => {
      if (pageKeys === keys) pageKeys = {}
    }
  })
}

/** How long after g the letter of a page may follow. */
const pause = 1000

/** Listens for the keys that work everywhere; not while somebody types or a dialog is open. */
export function useShortcuts(actions: Actions): void {
  useLayoutEffect(() => { // with the first picture: a key that is pressed at once counts
    let goUntil = 0
    const press = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        actions.palette()
        return
      }
      if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e.target) || document.querySelector('dialog[open]')) return
      const target = e.timeStamp < goUntil ? visiblePages().find((p) => p.key === e.key) : undefined
      goUntil = e.key === 'g' ? e.timeStamp + pause : 0
      if (target) go(target.path)
      else if (e.key === '?') actions.help()
      else if (e.key === '/') focusSearch() || actions.palette()
      else if (pageKeys[e.key] && !e.repeat) pageKeys[e.key]()
      else return
      e.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

/** Focuses the search of this page, if it has one. */
function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]')
  field?.focus()
  return field !== null
}
