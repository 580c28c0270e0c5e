// Draws charts with uPlot, on a canvas.
import uPlot from 'uplot'
import { clock, day } from '../format'
import type { Line } from './chart'

/** The smallest height; a chart is as high as its place. */
const height = 190

/** A chart that has been drawn. */
export class Plot {
  private readonly drawn: uPlot

  constructor(private readonly box: HTMLElement, times: number[], lines: Line[], format: (v: number) => string, byDay = false) {
    this.drawn = new uPlot(options(box, lines, format, byDay), data(times, lines), box)
  }

  show(times: number[], lines: Line[]): void {
    this.drawn.setData(data(times, lines))
  }

  resize(): void {
    this.drawn.setSize(sizeOf(this.box))
  }

  remove(): void {
    this.drawn.destroy()
  }
}

function data(times: number[], lines: Line[]): uPlot.AlignedData {
  return [times, ...lines.map((l) => l.values)] as uPlot.AlignedData
}

const sizeOf = (box: HTMLElement) => ({ width: box.clientWidth || 600, height: Math.max(height, box.clientHeight) })

/** Says what the values under the pointer are. */
function readout(lines: Line[], format: (v: number) => string, time: (t: number) => string): uPlot.Plugin {
  const text = document.createElement('p')
  text.className = 'readout small'
  return {
    hooks: {
      init: (u) => u.over.append(text),
      setCursor: (u) => {
        const at = u.cursor.idx
        text.hidden = at === null || at === undefined
        if (!text.hidden) text.textContent = `${time(u.data[0][at!])}: ${lines.map((l, i) => `${l.label} ${u.data[i + 1][at!] === null || u.data[i + 1][at!] === undefined ? '–' : format(u.data[i + 1][at!]!)}`).join(', ')}`
      },
    },
  }
}

function options(box: HTMLElement, lines: Line[], format: (v: number) => string, byDay: boolean): uPlot.Options {
  const time = (t: number) => (byDay ? day(t * 1000) : clock(t * 1000).slice(0, 5))
  const colour = (name: string, alpha = 1) => resolve(box, name, alpha)
  const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' }
  return {
    ...sizeOf(box),
    plugins: [readout(lines, format, time)],
    padding: [8, 8, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false } },
    legend: { show: false },
    scales: { ...(byDay && { x: { range: (_: uPlot, min: number, max: number): uPlot.Range.MinMax => [min - 43_200, max + 43_200] } }), y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [{ ...axis, size: 26, grid: { show: false }, ...(byDay && { incrs: [86_400, 7 * 86_400, 30 * 86_400] }), values: (_, ticks) => ticks.map(time) }, { ...axis, size: 68, values: (_, ticks) => ticks.map(format) }],
    series: [
      {},
      ...lines.map((l): uPlot.Series => ({
        label: l.label, stroke: colour(l.colour), width: l.kind === 'bars' ? 0 : 1.5, points: { show: false, filter: l.kind === 'bars' ? () => null : isolated, size: 4, width: 0, fill: colour(l.colour) },
        fill: l.kind ? colour(l.colour, l.kind === 'bars' ? 1 : 0.14) : undefined,
        paths: l.kind === 'bars' ? uPlot.paths.bars?.({ size: [0.6, byDay ? 40 : 8] }) : undefined,
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
