// The steps of a job as people follow them: what was worked on, what was waited for, and equal neighbours as one.
import type { Step } from './job'

/** A time in which the job waited for a decision, in seconds since 1970. */
export interface Wait {
  from: number
  to: number
}

/** One or several equal steps, in seconds since the job began. */
export interface Row {
  key: number
  call: string
  times: number
  from: number
  to: number
  waits: Wait[] // within it
  worked: number
  waited: number
  done: boolean
  error?: string
  outcomes: unknown[]
}

/** Steps that the runtime makes by itself, or that only ask for the time. */
export function isInternal(s: Step): boolean {
  return s.done && s.error === undefined && (s.effect === 'mcp.has' || s.kind === 'moment')
}

/** The part of a call that names what is called: `mcp.files.write_file{…}` is files.write_file. */
export function nameOf(call: string): string {
  return call.replace(/^mcp\./, '').replace(/^call\("([^"]+)"\s*,\s*"([^"]+)".*$/s, '$1.$2').replace(/[({].*$/s, '')
}

/** What the call is about: its first text. */
export function aboutOf(call: string): string {
  const args = (/[({](.*)$/s.exec(call)?.[1] ?? '').replaceAll(/\["[^"]*"\]\s*=|"(?:[^"\\]|\\.)*"\s*:/g, '')
  return /"((?:[^"\\]|\\.)*)"/.exec(args)?.[1].replaceAll('\\n', ' ') ?? ''
}

/** The beginning of a job: an attempt after a wait may have set its start anew. */
export function beginning(start: number, steps: Step[], waits: Wait[]): number {
  return Math.min(start, ...waits.map((w) => w.from), ...steps.slice(0, 1).map((s) => s.time))
}

/** Each step begins at the end of the one before it. A wait in that time is none of its work. */
export function rowsOf(steps: Step[], waits: Wait[], start: number): Row[] {
  const rows: Row[] = []
  let before = start
  for (const s of steps) {
    const from = before, to = Math.max(before, s.time)
    before = to
    const within = waits.map((w) => ({ from: Math.max(w.from, from) - start, to: Math.min(w.to, to) - start })).filter((w) => w.to > w.from)
    const waited = within.reduce((sum, w) => sum + w.to - w.from, 0)
    const row: Row = { key: s.step, call: s.call, times: 1, from: from - start, to: to - start, waits: within, worked: Math.max(0, to - from - waited), waited, done: s.done, error: s.error, outcomes: [s.outcome] }
    const last = rows.at(-1)
    if (last && last.done && row.done && !last.error && !row.error && nameOf(last.call) === nameOf(row.call) && waited === 0 && last.waited === 0) {
      last.times++
      last.to = row.to
      last.worked += row.worked
      last.outcomes.push(s.outcome)
    } else rows.push(row)
  }
  return rows
}
