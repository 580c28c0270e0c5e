// How a page feels to who uses it: frames, long tasks, keys, and how often it is drawn.
import type { Page } from '@playwright/test'

export interface Measured {
  seconds: number
  events: number // that the page was told
  peak: number // of them in the fullest second
  rounds: number // of changes of what is shown
  busy: number // part of the time that was spent in tasks of over 50 ms
  frame: number // between two pictures in ms, at the 90th percentile
  input: number // from a key or a click to the picture that shows it in ms, at the 90th percentile
}

interface Notes {
  began: number
  events: number
  times: number[] // of the events
  rounds: number
  long: number
  gaps: number[]
  inputs: number[]
}

type Watched = Window & { notes?: Notes }

/** Begins to measure, anew when it is being measured already. */
export async function watch(page: Page): Promise<void> {
  await page.evaluate(() => {
    const w = window as Watched
    const fresh = (): Notes => ({ began: performance.now(), events: 0, times: [], rounds: 0, long: 0, gaps: [], inputs: [] })
    if (w.notes) return void Object.assign(w.notes, fresh())
    const notes = (w.notes = fresh())
    new PerformanceObserver((list) => list.getEntries().forEach((e) => (notes.long += e.duration))).observe({ type: 'longtask' })
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (e.name === 'keydown' || e.name === 'click') notes.inputs.push(e.duration)
    }).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit)
    new MutationObserver(() => notes.rounds++).observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
    let before = performance.now()
    const picture = (now: number) => {
      notes.gaps.push(now - before)
      before = now
      requestAnimationFrame(picture)
    }
    requestAnimationFrame(picture)
    new EventSource('/api/v1/events').onmessage = () => {
      notes.events++
      notes.times.push(performance.now())
    }
  })
}

export function measured(page: Page): Promise<Measured> {
  return page.evaluate(() => {
    const { began, events, times, rounds, long, gaps, inputs } = (window as Watched).notes!
    const high = (list: number[]) => Math.round([...list].sort((a, b) => a - b)[Math.floor(list.length * 0.9)] ?? 0)
    const took = performance.now() - began
    let peak = 0
    for (let from = 0, to = 0; to < times.length; to++) {
      while (times[to] - times[from] > 1000) from++
      peak = Math.max(peak, to - from + 1)
    }
    return { seconds: took / 1000, events, peak, rounds, busy: long / took, frame: high(gaps), input: high(inputs) }
  })
}

/** What is wrong with it, beside a quiet page on the same machine; nothing when all is well. */
export function judge(m: Measured, quiet?: Measured): string[] {
  const wrong: string[] = []
  if (m.rounds > m.events / 4) wrong.push(`drawn ${m.rounds} times for ${m.events} events`)
  if (m.busy > 0.5) wrong.push(`busy for ${Math.round(m.busy * 100)} % of the time`)
  if (m.frame > Math.max(150, 4 * (quiet?.frame ?? 0))) wrong.push(`${m.frame} ms between pictures`)
  if (m.input > Math.max(300, 4 * (quiet?.input ?? 0))) wrong.push(`${m.input} ms from a key to its picture`)
  return wrong
}

/** Makes the page take every event for itself, at once, instead of a tenth of a second's together. */
export async function unbatched(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const later = window.setTimeout.bind(window)
    window.setTimeout = ((f: () => void, ms?: number, ...rest: unknown[]) => (ms === 100 ? (f(), 0) : later(f, ms, ...rest))) as typeof window.setTimeout
  })
}
