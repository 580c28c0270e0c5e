// The calls of the last hour or day, as the server counted them.
import { get } from './api'

export interface Point {
  calls: number
  errors: number
  p50_ms?: number
  p95_ms?: number
  p99_ms?: number
}

/** What was counted, a point for each step. */
export interface Series {
  from: string
  step_secs: number
  points: Point[]
  total: Point
}

export interface Report extends Series {
  servers: Record<string, Series>
  tools: { name: string; calls: number; errors: number; bytes: number }[]
}

export const callsPath = (span: string) => `/api/v1/calls?span=${span}`

export function loadCalls(span: string, signal: AbortSignal): Promise<Report> {
  return get<Report>(callsPath(span), signal)
}

/** The times of the points, in seconds since 1970. */
export function timesOf(r: Series): number[] {
  const from = Date.parse(r.from) / 1000
  return r.points.map((_, i) => from + i * r.step_secs)
}

/** A number of calls per second, with two digits that count. */
export function rate(calls: number): string {
  return calls === 0 ? '0' : calls >= 10 ? String(Math.round(calls)) : calls.toPrecision(2)
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`
}
