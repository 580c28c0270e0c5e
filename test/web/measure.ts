// Measures how responsive a page is: frames, long tasks, input and redraws.
import type { Page } from '@playwright/test'

export interface Measurement {
  seconds: number
  events: number // that the page received
  peak: number // most events in one second
  redraws: number // changes of the document
  busy: number // fraction of the time spent in tasks longer than 50 ms
  frame: number // ms between two frames, 90th percentile
  input: number // ms from a key or click to the next frame, 90th percentile
}

interface Samples {
  began: number
  events: number
  times: number[] // of the events
  redraws: number
  long: number
  gaps: number[]
  inputs: number[]
}

type MeasuredWindow = Window & { samples?: Samples }

/** Starts or restarts measuring. */
export async function startMeasuring(page: Page): Promise<void> {
  await page.evaluate(() => {
    const w = window as MeasuredWindow
    const empty = (): Samples => ({ began: performance.now(), events: 0, times: [], redraws: 0, long: 0, gaps: [], inputs: [] })
    if (w.samples) return void Object.assign(w.samples, empty())
    const samples = (w.samples = empty())
    new PerformanceObserver((list) => list.getEntries().forEach((e) => (samples.long += e.duration))).observe({ type: 'longtask' })
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (e.name === 'keydown' || e.name === 'click') samples.inputs.push(e.duration)
    }).observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit)
    new MutationObserver(() => samples.redraws++).observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
    let before = performance.now()
    const frame = (now: number) => {
      samples.gaps.push(now - before)
      before = now
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
    new EventSource('/api/v1/events').onmessage = () => {
      samples.events++
      samples.times.push(performance.now())
    }
  })
}

export function readMeasurement(page: Page): Promise<Measurement> {
  return page.evaluate(() => {
    const { began, events, times, redraws, long, gaps, inputs } = (window as MeasuredWindow).samples!
    const p90 = (list: number[]) => Math.round([...list].sort((a, b) => a - b)[Math.floor(list.length * 0.9)] ?? 0)
    const took = performance.now() - began
    let peak = 0
    for (let from = 0, to = 0; to < times.length; to++) {
      while (times[to] - times[from] > 1000) from++
      peak = Math.max(peak, to - from + 1)
    }
    return { seconds: took / 1000, events, peak, redraws, busy: long / took, frame: p90(gaps), input: p90(inputs) }
  })
}

/** What is too slow, compared with an idle page on the same machine; empty if nothing is. */
export function problems(m: Measurement, idle?: Measurement): string[] {
  const list: string[] = []
  if (m.redraws > m.events / 4) list.push(`drawn ${m.redraws} times for ${m.events} events`)
  if (m.busy > 0.5) list.push(`busy for ${Math.round(m.busy * 100)} % of the time`)
  if (m.frame > Math.max(150, 4 * (idle?.frame ?? 0))) list.push(`${m.frame} ms between frames`)
  if (m.input > Math.max(300, 4 * (idle?.input ?? 0))) list.push(`${m.input} ms from a key to its frame`)
  return list
}

/** Makes the page handle each event at once instead of in batches of 100 ms. */
export async function unbatched(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const later = window.setTimeout.bind(window)
    window.setTimeout = ((f: () => void, ms?: number, ...rest: unknown[]) => (ms === 100 ? (f(), 0) : later(f, ms, ...rest))) as typeof window.setTimeout
  })
}
