// What happened, as a sentence: the server words it (internal/observe/phrase).
import type { ServerEvent } from './events'

export interface Sentence {
  kind: 'good' | 'bad' | 'plain'
  text: string
  href?: string // where there is more of it
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

export function inWords(e: ServerEvent): Sentence {
  const d = e.data
  const [family] = e.type.split('.')
  const href = links[family]?.(d)
  if (e.type === 'log.line') return logged(d)
  if (e.said) return { kind: e.said.kind, text: short(e.said.text), href: e.type === 'job.paused' ? '#/approvals' : href }
  return { kind: 'plain', text: short(Object.entries(d).map(([k, v]) => `${k}=${text(v)}`).join(' ')), href }
}

/** A line of the log. What ties it to a trace is a link, not words. */
function logged(d: Record<string, unknown>): Sentence {
  const { trace_id: trace, span_id: _, ...facts } = (d.facts ?? {}) as Record<string, unknown>
  const words = [text(d.message), ...Object.entries(facts).map(([k, v]) => `${k}=${text(v)}`)].join(' ')
  return { kind: d.level === 'ERROR' ? 'bad' : 'plain', text: short(words), href: trace ? `#/traces/${text(trace)}` : undefined }
}

function short(s: string): string {
  return s.length > 240 ? `${s.slice(0, 240)}…` : s
}

/** Of what comes again and again only the newest is told: one line for each of these. */
const repeating = new Set(['job.progress', 'upstream.reconnecting', 'upstream.connecting'])

/** The newest events that are worth a line, the newest first. */
export function worthALine(all: ServerEvent[], most: number): ServerEvent[] {
  const lines: ServerEvent[] = []
  const told = new Set<string>()
  for (let i = all.length - 1; i >= 0 && lines.length < most; i--) {
    const e = all[i]
    if (e.type === 'tool.call_started' || e.type === 'session.used' || (e.type === 'tool.call_ended' && e.data.namespace === '')) continue
    if (repeating.has(e.type)) {
      const key = `${e.type} ${String(e.data.job_id ?? e.data.upstream)}`
      if (told.has(key)) continue
      told.add(key)
    }
    lines.push(e)
  }
  return lines
}
