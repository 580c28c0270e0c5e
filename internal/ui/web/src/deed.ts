// What somebody asks to do, in words.

interface Planned {
  effect?: string
  action?: string
  arguments?: Record<string, unknown>
  diff?: string
}

/** The arguments that say what a call is about, the most telling first. */
const telling = ['path', 'file', 'filename', 'title', 'name', 'url', 'query', 'id', 'key', 'branch', 'repo']

/** The deed: a tool's name as words, with what it is about. */
export function deedOf(subject: string, plan: Planned[]): string {
  const first = plan.find((p) => (p.action ?? p.effect) === subject) ?? plan[0]
  const words = (subject.split('.').pop() ?? subject).replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/[_-]+/g, ' ').trim().toLowerCase()
  const about = aboutOf(first?.arguments ?? {})
  const deed = words === 'write file' && about ? 'write' : words
  return `${deed.charAt(0).toUpperCase()}${deed.slice(1)}${about ? ` ${about}` : ''}`
}

function aboutOf(given: Record<string, unknown>): string {
  const short = (v: unknown) => (typeof v === 'string' && v !== '' && v.length <= 80 && !v.includes('\n') ? v : undefined)
  const from = short(given.source), to = short(given.destination)
  if (from && to) return `${from} to ${to}`
  for (const name of telling) if (short(given[name])) return short(given[name])!
  return Object.values(given).map(short).find(Boolean) ?? ''
}

/** How many lines a plan adds and removes. */
export function linesOf(plan: Planned[]): { added: number; removed: number } {
  const lines = plan.flatMap((p) => (p.diff ?? '').split('\n'))
  const count = (sign: string) => lines.filter((l) => l.startsWith(sign) && !l.startsWith(sign.repeat(3))).length
  return { added: count('+'), removed: count('-') }
}

/** The script that asks, by its name if it has one. */
export const scriptOf = (a: { script: string }) => (!a.script || /^job [\da-f-]+$/.test(a.script) ? 'a script without a name' : a.script)
