// Events as lines of text. The server writes most of them (internal/observe/phrase).
import type { ServerEvent } from './events'

export interface Description {
  kind: 'good' | 'bad' | 'plain'
  text: string
  href?: string // the page with details
}

const links: Record<string, (d: Record<string, unknown>) => string> = {
  job: (d) => `#/jobs/${String(d.job_id)}`,
  approval: () => '#/approvals',
  script: (d) => (d.hash ? `#/scripts/${String(d.hash)}` : '#/scripts'),
}

function text(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export function describe(e: ServerEvent): Description {
  const d = e.data
  const [family] = e.type.split('.')
  const href = links[family]?.(d)
  if (e.type === 'log.line') return describeLog(d)
  if (e.said) return { kind: e.said.kind, text: short(e.said.text), href: e.type === 'job.paused' ? '#/approvals' : href }
  return { kind: 'plain', text: short(Object.entries(d).map(([k, v]) => `${k}=${text(v)}`).join(' ')), href }
}

/** A log record. Its trace id becomes a link. */
function describeLog(d: Record<string, unknown>): Description {
  const { trace_id: trace, span_id: _, ...attributes } = (d.facts ?? {}) as Record<string, unknown>
  const line = [text(d.message), ...Object.entries(attributes).map(([k, v]) => `${k}=${text(v)}`)].join(' ')
  return { kind: d.level === 'ERROR' ? 'bad' : 'plain', text: short(line), href: trace ? `#/traces/${text(trace)}` : undefined }
}

function short(s: string): string {
  return s.length > 240 ? `${s.slice(0, 240)}…` : s
}

/** Of these types only the newest event of each job or upstream is shown. */
const repeating = new Set(['job.progress', 'upstream.reconnecting', 'upstream.connecting', 'upstream.installing'])

/** The newest events for the list of events, newest first. */
export function latestLines(all: ServerEvent[], limit: number): ServerEvent[] {
  const lines: ServerEvent[] = []
  const seen = new Set<string>()
  for (let i = all.length - 1; i >= 0 && lines.length < limit; i--) {
    const e = all[i]
    if (e.type === 'tool.call_started' || e.type === 'session.used' || (e.type === 'tool.call_ended' && e.data.namespace === '')) continue
    if (repeating.has(e.type)) {
      const key = `${e.type} ${String(e.data.job_id ?? e.data.upstream)}`
      if (seen.has(key)) continue
      seen.add(key)
    }
    lines.push(e)
  }
  return lines
}
