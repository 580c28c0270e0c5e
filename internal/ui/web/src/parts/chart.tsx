// A chart over time. uPlot draws it on a canvas; the label says the same in words.
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Point } from '../calls'
import { clock, duration } from '../format'
import { theme } from '../shell/preferences'

export interface Line {
  label: string
  values: (number | null)[]
  colour: string // a variable of the style
  kind?: 'area' | 'bars'
}

const height = 190

/** `times` are seconds since 1970; `format` writes a value. */
export function Chart({ label, times, lines, format }: { label: string; times: number[]; lines: Line[]; format: (v: number) => string }) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  const data = [times, ...lines.map((l) => l.values)] as uPlot.AlignedData
  useEffect(() => {
    const box = place.current!
    const create = () => {
      plot.current?.destroy()
      plot.current = new uPlot(options(box, lines, format), data, box)
    }
    create()
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', create)
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height }))
    resized.observe(box)
    return () => {
      dark.removeEventListener('change', create)
      resized.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [theme.value, lines.map((l) => l.label).join()])
  useEffect(() => plot.current?.setData(data), [times, lines])
  return <div class="chart" role="img" aria-label={`${label}: ${summary(lines, format)}`} ref={place} />
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

function options(box: HTMLElement, lines: Line[], format: (v: number) => string): uPlot.Options {
  const colour = (name: string, alpha = 1) => resolve(box, name, alpha)
  const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' }
  return {
    width: box.clientWidth || 600, height,
    padding: [8, 8, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false } },
    legend: { live: true },
    scales: { y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [{ ...axis, grid: { show: false }, values: (_, ticks) => ticks.map((t) => clock(t * 1000).slice(0, 5)) }, { ...axis, size: 60, values: (_, ticks) => ticks.map(format) }],
    series: [
      { value: '{HH}:{mm}:{ss}' },
      ...lines.map((l): uPlot.Series => ({
        label: l.label, stroke: colour(l.colour), width: l.kind === 'bars' ? 0 : 1.5, points: { show: false, filter: l.kind === 'bars' ? () => null : isolated, size: 4, width: 0, fill: colour(l.colour) },
        fill: l.kind ? colour(l.colour, l.kind === 'bars' ? 1 : 0.14) : undefined,
        paths: l.kind === 'bars' ? uPlot.paths.bars?.({ size: [0.6, 8] }) : undefined,
        value: (_, v) => (v === null || v === undefined ? '–' : format(v)),
      })),
    ],
  }
}

/** The values without neighbours, which no line shows. */
function isolated(plot: uPlot, series: number): number[] | null {
  const values = Array.from(plot.data[series])
  const alone = values.flatMap((v, i) => (v !== null && v !== undefined && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : []))
  return alone.length > 0 ? alone : null
}

/** The colour that a variable has in this theme: a canvas does not know variables. */
function resolve(box: HTMLElement, name: string, alpha: number): string {
  const probe = document.createElement('i')
  probe.style.color = `color-mix(in srgb, var(${name}) ${alpha * 100}%, transparent)`
  box.append(probe)
  const found = getComputedStyle(probe).color
  probe.remove()
  return found
}
