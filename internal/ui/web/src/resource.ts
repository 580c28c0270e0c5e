// Data of the server that a component shows and reloads.
import { useEffect, useRef, useState } from 'preact/hooks'
import { isOld, listen, online, type ServerEvent } from './events'

export interface Loaded<T> {
  data?: T
  error?: Error
  reload: () => void
}

/**
 * Loads data with `load`. It loads again when `deps` change, and when an event arrives
 * whose type begins with one of `on` and that `matches`, at most every 300 ms. With
 * `every` it also loads each `every` milliseconds while the page is visible. It loads
 * again after the server was away.
 */
export function useData<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], on: string[] = [], matches: (e: ServerEvent) => boolean = () => true, every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error }>({})
  const [version, setVersion] = useState(0)
  const timer = useRef<number>()
  const reload = () => setVersion((n) => n + 1)
  useEffect(() => {
    const control = new AbortController()
    load(control.signal).then(
      (data) => control.signal.aborted || setState({ data }),
      (error: Error) => control.signal.aborted || setState((s) => ({ data: s.data, error })),
    )
    return () => control.abort()
  }, [...deps, version])
  useEffect(() => {
    if (on.length === 0) return
    const stop = listen((e) => {
      if (timer.current !== undefined || isOld(e) || !on.some((prefix) => e.type.startsWith(prefix)) || !matches(e)) return
      timer.current = window.setTimeout(() => {
        timer.current = undefined
        reload()
      }, 300)
    })
    return () => {
      stop()
      window.clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [on.join()])
  useEffect(() => {
    if (state.error && online.value) reload()
  }, [online.value])
  useEffect(() => {
    if (every === 0) return
    const interval = setInterval(() => document.hidden || reload(), every)
    return () => clearInterval(interval)
  }, [every])
  return { ...state, reload }
}
