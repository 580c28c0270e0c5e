// What happened, as a sentence.
import { duration, why } from './format'
import type { ServerEvent } from './events'

export interface Sentence {
  kind: 'good' | 'bad' | 'plain'
  text: string
  href?: string // where there is more of it
}

/** Events as sentences, with the names of their facts in braces. */
const phrases: Record<string, [Sentence['kind'], string]> = {
  'upstream.connecting': ['plain', '{upstream}: connecting to {target}'],
  'upstream.connected': ['good', '{upstream}: connected, {tool_count} tools'],
  'upstream.reconnecting': ['bad', '{upstream}: away, attempt {attempt}: {error}'],
  'upstream.needs_auth': ['bad', '{upstream}: wants a login: {error}'],
  'upstream.asleep': ['plain', '{upstream}: asleep until it is needed'],
  'upstream.removed': ['plain', '{upstream}: removed'],
  'upstream.tools_refreshed': ['plain', '{upstream}: has {tool_count} tools now'],
  'upstream.stderr': ['plain', '{upstream}: {line}'],
  'catalog.changed': ['plain', '{tools} tools are offered now'],
  'approval.requested': ['bad', 'approval wanted: {subject}'],
  'approval.settled': ['plain', 'approval of {subject}: {status}'],
  'tool.held': ['bad', '{upstream}.{name}: held until somebody approves its definition'],
  'tool.changed': ['bad', '{upstream}.{name}: held, its definition has changed'],
  'tool.shadowed': ['bad', "{upstream}.{name}: refused, its name passes for another's"],
  'pin.decided': ['plain', '{upstream}.{name}: {state} by {by}'],
  'node.joined': ['plain', 'node {name}: joined'],
  'node.gone': ['bad', 'node {name}: gone'],
  'script.published': ['good', 'script {name}: published'],
  'artifact.created': ['plain', 'artifact {name}: made'],
  'event.missed': ['bad', '{count} events missed'],
  'key.created': ['plain', 'key {name}: made'],
  'key.revoked': ['plain', 'key {name}: revoked'],
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
  const [family, what] = e.type.split('.')
  const href = links[family]?.(d)
  const phrase = phrases[e.type]
  if (phrase) return { kind: phrase[0], text: short(phrase[1].replaceAll(/\{(\w+)\}/g, (_, name: string) => text(d[name]))), href }
  switch (e.type) {
    case 'log.line':
      return logged(d)
    case 'tool.call_ended':
      return { kind: d.error ? 'bad' : 'plain', text: short(`${text(d.namespace)}.${text(d.tool)}: ${d.error ? text(d.error) : `answered after ${duration(Number(d.duration_ms ?? 0))}`}`) }
    case 'job.progress':
      return { kind: 'plain', text: short(`${job(d)}: ${Math.round(Number(d.fraction ?? 0) * 100)} % ${text(d.message)}`), href }
    case 'job.finished':
      return { kind: d.status === 'complete' ? 'good' : 'bad', text: short(`${job(d)}: ${text(d.status)} after ${duration(Number(d.took_ms ?? 0))}${d.error ? `: ${why(text(d.error))}` : ''}`), href }
    case 'tool.flagged':
      return { kind: 'plain', text: short(`${text(d.upstream)}.${text(d.name)}: ${(Array.isArray(d.flags) ? d.flags : []).map((f: { text?: string }) => f.text ?? '').join('; ')}`) }
    case 'job.paused':
      return { kind: 'bad', text: `${job(d)}: waits for an approval of ${text(d.subject)}`, href: '#/approvals' }
  }
  if (family === 'job') return { kind: 'plain', text: `${job(d)}: ${what}`, href }
  if (family === 'session') return { kind: 'plain', text: `session ${text(d.session)}: ${what}` }
  return { kind: 'plain', text: short(Object.entries(d).map(([k, v]) => `${k}=${text(v)}`).join(' ')), href }
}

/** A line of the log. What ties it to a trace is a link, not words. */
function logged(d: Record<string, unknown>): Sentence {
  const { trace_id: trace, span_id: _, ...facts } = (d.facts ?? {}) as Record<string, unknown>
  const words = [text(d.message), ...Object.entries(facts).map(([k, v]) => `${k}=${text(v)}`)].join(' ')
  return { kind: d.level === 'ERROR' ? 'bad' : 'plain', text: short(words), href: trace ? `#/traces/${text(trace)}` : undefined }
}

function job(d: Record<string, unknown>): string {
  return `job ${d.name ? text(d.name) : text(d.job_id).slice(0, 8)}`
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
