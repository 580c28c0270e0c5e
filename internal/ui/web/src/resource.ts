// Data of the server that a component shows and keeps fresh.
import { useEffect, useRef, useState } from 'preact/hooks'
import { listen, type ServerEvent } from './events'

export interface Loaded<T> {
  data?: T
  error?: Error
  reload: () => void
}

/**
 * Loads with `load`, again when `deps` change, and again when an event happens
 * whose type begins with one of `on` and that `counts`, at most every 300 ms; with
 * `every`, also after so many milliseconds while the page is looked at.
 */
export function useData<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], on: string[] = [], counts: (e: ServerEvent) => boolean = () => true, every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Error }>({})
  const [turn, setTurn] = useState(0)
  const timer = useRef<number>()
  const reload = () => setTurn((n) => n + 1)
  useEffect(() => {
    const control = new AbortController()
    load(control.signal).then(
      (data) => control.signal.aborted || setState({ data }),
      (error: Error) => control.signal.aborted || setState((s) => ({ data: s.data, error })),
    )
    return () => control.abort()
  }, [...deps, turn])
  useEffect(() => {
    if (on.length === 0) return
    const stop = listen((e) => {
      if (timer.current !== undefined || !on.some((prefix) => e.type.startsWith(prefix)) || !counts(e)) return
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
    if (every === 0) return
    const beat = setInterval(() => document.hidden || reload(), every)
    return () => clearInterval(beat)
  }, [every])
  return { ...state, reload }
}
