// A script of the calls of a session, a rule about one, and the text for a bug report.
import { moment } from '../format'
import { outcomeOf, type Session, type Step } from './model'

const words = new Set(['and', 'break', 'do', 'else', 'elseif', 'end', 'false', 'for', 'function', 'goto', 'if', 'in', 'local', 'nil', 'not', 'or', 'repeat', 'return', 'then', 'true', 'until', 'while'])
const isName = (text: string) => /^[A-Za-z_]\w*$/.test(text) && !words.has(text)
const quoted = (text: string) => JSON.stringify(text).replace(/\\u([0-9a-f]{4})/g, '\\u{$1}')
const index = (name: string) => (isName(name) ? `.${name}` : `[${quoted(name)}]`)

/** A value as Lua source. `named` gives constants that are parameters. */
function lua(value: unknown, named: (v: unknown) => string | undefined): string {
  const name = named(value)
  if (name) return `params.${name}`
  if (value === null || value === undefined) return 'nil'
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `{${value.map((v) => lua(v, named)).join(', ')}}`
  if (typeof value !== 'object') return String(value)
  return `{${Object.entries(value).map(([k, v]) => `${isName(k) ? k : `[${quoted(k)}]`} = ${lua(v, named)}`).join(', ')}}`
}

/** The calls of servers' tools that succeeded, in their order. */
export const repeatable = (steps: Step[]) => steps.filter((s) => s.tool.includes('.') && outcomeOf(s) === 'ok')

/** The texts and numbers that occur in more than one call, with the name of the argument they are first in. */
function constants(steps: Step[]): Map<unknown, string> {
  const uses = new Map<unknown, { key: string; steps: Set<Step> }>()
  for (const s of steps) {
    if (s.args === null || typeof s.args !== 'object') continue
    for (const [key, value] of Object.entries(s.args)) {
      if ((typeof value !== 'string' || value.length < 2) && typeof value !== 'number') continue
      const use = uses.get(value) ?? { key, steps: new Set() }
      use.steps.add(s)
      uses.set(value, use)
    }
  }
  const named = new Map<unknown, string>()
  for (const [value, { key, steps: in_ }] of uses) {
    if (in_.size < 2) continue
    const base = isName(key) ? key : 'value'
    let name = base
    for (let n = 2; [...named.values()].includes(name); n++) name = `${base}${n}`
    named.set(value, name)
  }
  return named
}

/** A Lua script that makes the calls again. Constants that are repeated become its parameters. */
export function scriptOf(session: Session, steps: Step[]): string {
  const calls = repeatable(steps), named = constants(calls)
  const params = [...named].map(([value, name]) => `    ${name} = { type = ${typeof value === 'number' ? '"number"' : '"string"'}, default = ${typeof value === 'number' ? value : quoted(String(value))} },`)
  const body = calls.map((s, i) => {
    const [space, ...rest] = s.tool.split('.')
    const whole = !JSON.stringify(s.args ?? {}).includes('…') && !JSON.stringify(s.args ?? {}).includes('[redacted]')
    return `${whole ? '' : '  -- The record has not all of these arguments: complete them.\n'}  local step${i + 1} = mcp${index(space)}${index(rest.join('.'))}${lua(s.args ?? {}, (v) => named.get(v))}`
  })
  return [
    `-- ${session.title}: made of what ${session.agent ?? session.name ?? session.who} did, ${moment(session.began)}.`,
    'function describe()',
    `  return { description = ${quoted(session.title)}${params.length > 0 ? `, params = {\n${params.join('\n')}\n  } }` : ' }'}`,
    'end',
    '',
    'function main(params)',
    ...body,
    `  return { ${calls.map((_, i) => `step${i + 1} = step${i + 1}`).join(', ')} }`,
    'end',
    '',
  ].join('\n')
}

export interface Rule {
  key?: string
  tool: string
  do: 'allow' | 'approve' | 'deny'
}

/** The rule about a tool for whoever called it. */
export function ruleOf(session: Session, step: Step, verdict: Rule['do']): Rule {
  const named = session.name && !session.who.startsWith('guest') && session.who !== 'local'
  return { ...(named && { key: session.name }), tool: step.tool, do: verdict }
}

/** A rule as it is in luanette.toml. */
export const tomlOf = (rule: Rule) => `[[policy]]\n${Object.entries(rule).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join('')}`

/** The session as text for a bug report. The record is without secrets already. */
export function reportOf(session: Session, steps: Step[]): string {
  const lines = steps.map((s) => {
    const what = `${new Date(s.at).toISOString()} ${s.parent ? '  ' : ''}\`${s.tool}\` ${JSON.stringify(s.args ?? {})}`
    return `- ${what}: ${outcomeOf(s)}${s.error ? ` (${s.error}${s.rule ? `, ${s.rule}` : ''}): ${s.message ?? JSON.stringify(s.result ?? '')}` : ''}, ${(s.took_us / 1000).toFixed(1)} ms, trace ${s.trace ?? 'none'}`
  })
  return `# ${session.title}\n\n${session.agent ?? 'a client'}, session ${session.id}, ${session.began} to ${session.latest}: ${session.calls} calls, ${session.failed} failed, ${session.denied} denied\n\n${lines.join('\n')}\n`
}
