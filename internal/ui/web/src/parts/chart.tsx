// A chart over time, drawn when it comes into view; the label says the same in words.
import { useEffect, useRef } from 'preact/hooks'
import type { Point } from '../calls'
import { duration } from '../format'
import { theme } from '../shell/preferences'
import type { Plot } from './plot'

export interface Line {
  label: string
  values: (number | null)[]
  colour: string // a variable of the style
  kind?: 'area' | 'bars'
}

interface Props {
  label: string
  times: number[] // seconds since 1970
  lines: Line[]
  format: (v: number) => string
  byDay?: boolean // a value for each day
}

export function Chart(props: Props) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot>()
  const latest = useRef(props)
  latest.current = props
  const { label, times, lines, format } = props
  useEffect(() => draw(place.current!, plot, latest), [theme.value, lines.map((l) => l.label).join()])
  useEffect(() => plot.current?.show(times, lines), [times, lines])
  return <div class="chart" role="img" aria-label={`${label}: ${summary(lines, format)}`} ref={place} />
}

/** Draws a chart as soon as its place is seen, and again in other colours; the returned function removes it. */
function draw(box: HTMLElement, plot: { current?: Plot }, latest: { current: Props }): () => void {
  let wanted = true
  const create = async () => {
    const { Plot } = await import('./plot')
    if (!wanted) return
    const { times, lines, format, byDay } = latest.current
    plot.current?.remove()
    plot.current = new Plot(box, times, lines, format, byDay)
  }
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some((e) => e.isIntersecting)) return
    seen.disconnect()
    void create().catch(() => undefined) // the server is away: the label says what the chart would
  }, { rootMargin: '100px' })
  seen.observe(box)
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const redraw = () => void (plot.current && create())
  dark.addEventListener('change', redraw)
  const resized = new ResizeObserver(() => plot.current?.resize())
  resized.observe(box)
  return () => {
    wanted = false
    seen.disconnect()
    dark.removeEventListener('change', redraw)
    resized.disconnect()
    plot.current?.remove()
    plot.current = undefined
  }
}

/** p50, p95 and p99 over time. */
export function LatencyChart({ times, points }: { times: number[]; points: Point[] }) {
  return <Chart label="latency" times={times} format={duration} lines={[
    { label: 'p50', values: points.map((p) => p.p50_ms ?? null), colour: '--accent' },
    { label: 'p95', values: points.map((p) => p.p95_ms ?? null), colour: '--warn' },
    { label: 'p99', values: points.map((p) => p.p99_ms ?? null), colour: '--bad' },
  ]} />
}

/** The largest and the last value of each line, as text. */
function summary(lines: Line[], format: (v: number) => string): string {
  return lines.map((l) => {
    const known = l.values.filter((v): v is number => v !== null)
    return `${l.label} ${known.length > 0 ? `at most ${format(Math.max(...known))}, last ${format(known[known.length - 1])}` : 'no values'}`
  }).join('; ')
}
