// What the server knows of sessions and their steps, and how people read it.
import { count, duration } from '../format'

export interface Session {
  id: string
  who: string
  name?: string
  agent?: string
  title: string
  server?: string // whose tools were called; ends with + if there are others
  began: string
  latest: string
  steps: number
  calls: number
  failed: number
  denied: number
  asked: number
  worked_us: number
  waited_us: number
  given: number
  used: number
}

export interface Step {
  id: string
  trace?: string
  at: string
  tool: string
  decision: string
  rule?: string
  error?: string
  size: number
  took_us: number
  own?: boolean
  parent?: string
  args?: unknown
  sent?: number
  result?: unknown
  message?: string
  waited_us?: number
  job?: string
  approval?: string // what it waits for
}

/** A line of the transcript: one step, or equal neighbours, with what a script called. */
export interface Line {
  step: Step
  all: Step[]
  inner: Line[]
  waited: number // milliseconds, for a person
}

export type Outcome = 'ok' | 'failed' | 'denied' | 'asked'

export function outcomeOf(s: Step): Outcome {
  if (s.decision === 'deny' || s.error === 'denied') return 'denied'
  if (s.decision === 'ask' || s.approval) return 'asked'
  return s.error ? 'failed' : 'ok'
}

const begun = (s: Step) => Date.parse(s.at)
const ended = (s: Step) => begun(s) + s.took_us / 1000

/** The steps as lines: calls of scripts below them, equal neighbours as one, and decided requests as waiting of the call. */
export function linesOf(steps: Step[]): Line[] {
  const ids = new Set(steps.map((s) => s.id))
  const inner = new Map<string, Step[]>()
  for (const s of steps) {
    const above = s.parent && ids.has(s.parent) && s.parent !== s.id ? s.parent : ''
    inner.set(above, [...(inner.get(above) ?? []), s])
  }
  const linesIn = (above: string): Line[] => fold(decided((inner.get(above) ?? []).map((step) => ({ step, all: [step], inner: linesIn(step.id), waited: (step.waited_us ?? 0) / 1000 }))))
  return linesIn('')
}

/** Joins a request for approval with the call that was made after it. */
function decided(lines: Line[]): Line[] {
  const joined: Line[] = []
  for (const line of lines) {
    const [made] = line.inner
    if (outcomeOf(line.step) === 'asked' && line.inner.length === 1 && made.step.tool === line.step.tool) {
      joined.push({ ...made, waited: Math.max(made.waited, begun(made.step) - begun(line.step)) })
      continue
    }
    const asked = joined.findIndex((l) => outcomeOf(l.step) === 'asked' && l.step.tool === line.step.tool && sameArgs(l.step, line.step))
    if (asked >= 0 && outcomeOf(line.step) !== 'asked') {
      const [request] = joined.splice(asked, 1)
      joined.push({ ...line, waited: Math.max(line.waited, begun(line.step) - ended(request.step)) })
      continue
    }
    joined.push(line)
  }
  return joined
}

const sameArgs = (a: Step, b: Step) => JSON.stringify(a.args) === JSON.stringify(b.args)

/** Joins neighbours that call the same tool with the same outcome. What went wrong stays by itself. */
function fold(lines: Line[]): Line[] {
  const folded: Line[] = []
  for (const line of lines) {
    const last = folded.at(-1)
    if (last && last.step.tool === line.step.tool && outcomeOf(last.step) === 'ok' && outcomeOf(line.step) === 'ok' && last.inner.length + line.inner.length === 0 && line.step.tool.includes('.')) {
      last.all.push(line.step)
      last.waited += line.waited
      continue
    }
    folded.push({ ...line, all: [...line.all] })
  }
  return folded
}

/** How long the calls of a line worked, in milliseconds. */
export const worked = (line: Line) => Math.max(0, line.all.reduce((sum, s) => sum + s.took_us, 0) / 1000 - (line.step.waited_us ?? 0) / 1000)

const scripts = new Set(['execute_code', 'lua_eval', 'lua_preview'])
export const isScript = (s: Step) => scripts.has(s.tool)

const field = (value: unknown, key: string): unknown => (value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined)
const textIn = (value: unknown, key: string) => {
  const found = field(value, key)
  return typeof found === 'string' ? found : ''
}

/** The source of a script, as far as the record has it. */
export const sourceOf = (s: Step) => textIn(s.args, 'code')

export interface Words {
  verb: string
  name?: string // of a tool
  quoted?: string
  about?: string
}

/** What was done, in words. */
export function wordsOf(line: Line): Words {
  const s = line.step
  if (s.tool === 'search_tools') return { verb: 'Searched', quoted: textIn(s.args, 'query') || String((field(s.args, 'queries') as unknown[] | undefined)?.[0] ?? 'everything') }
  if (s.tool === 'get_tool_definitions') return { verb: `Read ${count((field(s.args, 'names') as unknown[] | undefined)?.length ?? 1, 'definition')}` }
  if (isScript(s)) {
    const lines = sourceOf(s).split('\n').length, calls = callsIn(line)
    return { verb: s.tool === 'lua_preview' ? 'Previewed a script' : 'Ran a script', about: [languageOf(s), count(lines, 'line'), calls > 0 && count(calls, 'call')].filter(Boolean).join(', ') }
  }
  if (s.tool === 'lua_execute') return { verb: 'Started a job' }
  return { verb: outcomeOf(s) === 'asked' ? 'Asks to call' : 'Called', name: s.tool }
}

function languageOf(s: Step): string {
  const named = textIn(s.args, 'language')
  return (named ? named === 'lua' : s.tool !== 'execute_code') ? 'Lua' : 'JavaScript'
}

export const callsIn = (line: Line): number => line.inner.reduce((n, l) => n + l.all.length + callsIn(l), 0)

/** What came back, in a few words, or why nothing did. */
export function cameBack(line: Line): string {
  const s = line.step
  if (s.approval) return '' // it is shown
  if (outcomeOf(s) !== 'ok') return s.message || shortText(s.result) || s.rule || s.error || ''
  if (s.tool === 'search_tools') {
    const tools = (field(s.result, 'tools') as unknown[] | undefined) ?? []
    return tools.length > 0 ? `found ${tools.slice(0, 4).map((t) => textIn(t, 'name')).join(', ')}` : 'found nothing'
  }
  if (isScript(s)) return shortText(field(s.result, 'result') ?? s.result)
  return [shortText(s.args), shortText(s.result)].filter(Boolean).join(' → ')
}

/** A value in one short line. */
export function shortText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return cut(value)
  if (Array.isArray(value)) return count(value.length, 'item')
  if (typeof value !== 'object') return String(value)
  const entries = Object.entries(value)
  if (entries.length === 1) return shortText(entries[0][1])
  return cut(entries.filter(([, v]) => v === null || typeof v !== 'object').map(([k, v]) => `${k} ${String(v)}`).join(', ')) || count(entries.length, 'field')
}

const cut = (text: string) => (text.replace(/\s+/g, ' ').trim().length > 140 ? `${text.replace(/\s+/g, ' ').trim().slice(0, 140)}…` : text.replace(/\s+/g, ' ').trim())

/** About how many tokens bytes take. */
export const tokensOf = (bytes: number) => Math.round(bytes / 4)

export const tokensText = (n: number) => (n < 1000 ? String(n) : n < 10_000 ? n.toLocaleString('en') : `${Math.round(n / 1000)}k`)

/** Work and waiting of a line: `12 ms + 1 min 52 s wait`. */
export function times(line: Line): string {
  return line.waited > 0 ? `${duration(worked(line))} + ${duration(line.waited)} wait` : duration(worked(line))
}

/** The program without its version. */
export const program = (s: Session) => s.agent?.replace(/ [^ ]*$/, '') || (s.id.startsWith('job:') ? 'job' : 'a program')

/** Two letters that stand for a program. */
export function initials(s: Session): string {
  const words = program(s).split(/[^a-zA-Z]+/).filter(Boolean)
  return words.length > 1 ? (words[0][0] + words[1][0]).toUpperCase() : (words[0] ?? '?').slice(0, 2).replace(/^./, (c) => c.toUpperCase())
}

/** The day heads of a list. */
export function dayOf(time: string, now = new Date()): string {
  const t = new Date(time)
  if (now.getTime() - t.getTime() < 5 * 60_000) return 'Now'
  if (t.toDateString() === now.toDateString()) return 'Earlier today'
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1)
  return t.toDateString() === yesterday.toDateString() ? 'Yesterday' : 'Before'
}
