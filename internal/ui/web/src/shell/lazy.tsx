// Parts of the page that are loaded when they are first shown.
import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Skeleton } from '../parts/skeleton'

export interface Lazy<P> {
  (props: P): VNode
  load: () => Promise<void> // ahead of its use; it does not throw
}

/** A component of another file. Once it is loaded, it is shown at once. */
export function lazy<P extends object>(fetch: () => Promise<ComponentType<P>>): Lazy<P> {
  let Loaded: ComponentType<P> | undefined
  const load = async () => {
    Loaded ??= await fetch()
  }
  const Part = (props: P) => {
    const [failed, setFailed] = useState(false)
    const [, show] = useState(Loaded !== undefined)
    useEffect(() => void load().then(() => show(true), () => setFailed(true)), []) // it may be there since the first picture
    if (Loaded) return <Loaded {...props} />
    return failed ? <Failed /> : <Skeleton />
  }
  return Object.assign(Part, { load: () => load().catch(() => undefined) })
}

/** The server is away, or it has another version than this page. */
function Failed() {
  return <p class="bad" role="alert">This part of the page could not be loaded. <button type="button" onClick={() => location.reload()}>Load the page again</button></p>
}

/** Calls f when the browser has nothing else to do, or at last after half a second. */
export function whenIdle(f: () => void): void {
  if ('requestIdleCallback' in window) requestIdleCallback(f, { timeout: 500 })
  else setTimeout(f, 200) // Safari
}
