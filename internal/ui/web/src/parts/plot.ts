// Draws charts with uPlot, on a canvas.
import uPlot from 'uplot'
import { clock } from '../format'
import type { Line } from './chart'

export const height = 190

/** A chart that has been drawn. */
export class Plot {
  private readonly drawn: uPlot

  constructor(private readonly box: HTMLElement, times: number[], lines: Line[], format: (v: number) => string) {
    this.drawn = new uPlot(options(box, lines, format), data(times, lines), box)
  }

  show(times: number[], lines: Line[]): void {
    this.drawn.setData(data(times, lines))
  }

  resize(): void {
    this.drawn.setSize({ width: this.box.clientWidth, height })
  }

  remove(): void {
    this.drawn.destroy()
  }
}

function data(times: number[], lines: Line[]): uPlot.AlignedData {
  return [times, ...lines.map((l) => l.values)] as uPlot.AlignedData
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
