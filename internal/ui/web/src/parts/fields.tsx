// The settings of a server in the configuration file, as fields of a form.
import { useId, useState } from 'preact/hooks'
import { InvalidField } from '../api'
import { apiKinds, type ServerSettings } from '../setup'
import { notify } from './notices'

interface Setting {
  label: string
  hint?: string
  placeholder?: string
  kind?: 'text' | 'lines' | 'names' | 'check' | 'area'
  choices?: [value: string, text: string][]
}

/** How each setting is shown; a key that is missing is a line of text. */
const known: Record<string, Setting> = {
  command: { label: 'Command', kind: 'area' },
  url: { label: 'URL', placeholder: 'https://example.org/mcp' },
  ...Object.fromEntries(Object.entries(apiKinds).map(([key, k]) => [key, { label: k.label, placeholder: k.placeholder }])),
  env: { label: 'Environment variables', kind: 'names' },
  headers: { label: 'Headers', kind: 'names' },
  cwd: { label: 'Folder', placeholder: 'the folder of the server' },
  transport: { label: 'Transport', choices: [['', 'auto'], ['http', 'http'], ['sse', 'sse']] },
  protocol: { label: 'Protocol', choices: [['', 'auto'], ['legacy', 'legacy (with initialize)'], ['modern', 'modern (2026-07-28)']] },
  timeout: { label: 'Longest time of a call without progress', placeholder: '60s' },
  start: { label: 'Start', choices: [['', 'at once'], ['lazy', 'on first use']] },
  sandbox: { label: 'Sandbox', choices: [['', 'as configured for all'], ['off', 'off: it may do what you may do'], ['open', 'open: reads all but credentials, writes its own folders'], ['strict', 'strict: sees its own files and the listed hosts only']] },
  read: { label: 'Folders that it may read', kind: 'lines', hint: 'one a line' },
  write: { label: 'Folders that it may write to', kind: 'lines', hint: 'one a line' },
  network: { label: 'Hosts that it may connect to', kind: 'lines', hint: 'one a line, such as api.github.com:443; only in a strict sandbox' },
  read_only: { label: 'only read-only tools', kind: 'check' },
}

/** The settings that the form of each kind of server has, the address first. */
export function settingsFor(settings: ServerSettings): string[] {
  const common = ['timeout', 'read_only']
  if ('command' in settings) return ['command', 'env', 'cwd', 'start', 'sandbox', 'read', 'write', 'network', ...common]
  if ('url' in settings) return ['url', 'transport', 'protocol', 'headers', ...common]
  const api = Object.keys(settings).find((key) => key in apiKinds)
  return [...(api ? [api] : []), 'headers', ...common]
}

/** What differs between two states of the settings; null removes one. */
export function difference(before: ServerSettings, after: ServerSettings, names: string[]): ServerSettings {
  return Object.fromEntries(names.filter((n) => JSON.stringify(before[n]) !== JSON.stringify(after[n])).map((n) => [n, after[n] ?? null]))
}

interface SettingProps {
  name: string // the key of the configuration file
  required?: boolean
  value: unknown
  problem?: string
  change: (v: unknown) => void
}

/** One setting; an empty one is undefined. */
export function SettingField({ name, required, value, problem, change }: SettingProps) {
  const id = useId()
  const s = known[name] ?? { label: name }
  const marks = { id, 'aria-invalid': problem ? ('true' as const) : undefined, 'aria-describedby': problem ? `${id}-problem` : undefined }
  const below = problem && <p class="bad small problem" id={`${id}-problem`} role="alert">{problem}</p>
  const text = (typed: string) => change(typed === '' ? undefined : typed)
  if (s.kind === 'check') return <div class="field"><label><input type="checkbox" {...marks} checked={value === true} onChange={(e) => change(e.currentTarget.checked || undefined)} /> {s.label}</label>{below}</div>
  if (s.kind === 'names') return <div class="field"><Names label={s.label} value={(value ?? {}) as Record<string, string | null>} change={(v) => change(Object.keys(v).length > 0 ? v : undefined)} />{below}</div>
  const given = String(value ?? '')
  const choices = s.choices && (s.choices.some(([v]) => v === given) ? s.choices : [...s.choices, [given, given] as [string, string]])
  return (
    <div class="field">
      <label for={id}>{s.label}{s.hint && <span class="soft"> {s.hint}</span>}</label>
      {choices ? <select {...marks} value={given} onChange={(e) => text(e.currentTarget.value)}>{choices.map(([v, t]) => <option key={v} value={v}>{t}</option>)}</select>
        : s.kind === 'lines' ? <Lines marks={marks} value={(value ?? []) as string[]} change={change} />
        : s.kind === 'area' ? <textarea {...marks} rows={2} spellcheck={false} value={given} onInput={(e) => text(e.currentTarget.value)} />
        : <input {...marks} required={required} spellcheck={false} placeholder={s.placeholder} value={given} onInput={(e) => text(e.currentTarget.value)} />}
      {below}
    </div>
  )
}

function Lines({ marks, value, change }: { marks: object; value: string[]; change: (v: unknown) => void }) {
  const [text, setText] = useState(value.join('\n'))
  return (
    <textarea {...marks} rows={Math.max(2, value.length)} spellcheck={false} value={text} onInput={(e) => {
      setText(e.currentTarget.value)
      const lines = e.currentTarget.value.split('\n').map((l) => l.trim()).filter(Boolean)
      change(lines.length > 0 ? lines : undefined)
    }} />
  )
}

interface Named {
  name: string
  value: string
  stored: boolean // has a value that is not shown, and stays unless another one is entered
}

/** Names with values that may be secret. */
export function Names({ label, value, change }: { label: string; value: Record<string, string | null>; change: (v: Record<string, string | null>) => void }) {
  const [list, setList] = useState<Named[]>(() => Object.entries(value).map(([name, v]) => ({ name, value: v ?? '', stored: v === null })))
  const one = label.toLowerCase().replace(/s$/, '')
  const set = (next: Named[]) => {
    setList(next)
    change(Object.fromEntries(next.filter((n) => n.name).map((n) => [n.name, n.stored ? null : n.value])))
  }
  const edit = (at: number, part: Partial<Named>) => set(list.map((n, i) => (i === at ? { ...n, ...part } : n)))
  return (
    <fieldset>
      <legend>{label}</legend>
      {list.map((n, i) => (
        <div class="header" key={i}>
          <input aria-label={`name of ${one} ${i + 1}`} placeholder={label === 'Headers' ? 'Authorization' : 'API_KEY'} value={n.name} readOnly={n.stored} onInput={(e) => edit(i, { name: e.currentTarget.value })} />
          <input aria-label={`value of ${one} ${i + 1}`} type="password" autocomplete="off" placeholder={n.stored ? 'unchanged' : label === 'Headers' ? 'Bearer …' : ''} value={n.value} onInput={(e) => edit(i, { value: e.currentTarget.value, stored: false })} />
          <button type="button" aria-label={`remove ${one} ${n.name || i + 1}`} onClick={() => set(list.filter((_, at) => at !== i))}>×</button>
        </div>
      ))}
      <button type="button" onClick={() => set([...list, { name: '', value: '', stored: false }])}>Add {/^[aeiou]/.test(one) ? 'an' : 'a'} {one}</button>
    </fieldset>
  )
}

export interface Attempt {
  busy: boolean
  failure: string // that belongs to no field
  problems: Record<string, string> // by field
  attempt: (action: () => Promise<string>) => void
}

/** Shows what went wrong in the form, at its field if the server names one: a notice would be hidden behind the dialog. */
export function useAttempt(done: () => void, undo?: () => (() => void) | undefined): Attempt {
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState('')
  const [problems, setProblems] = useState<Record<string, string>>({})
  const attempt = async (action: () => Promise<string>) => {
    setBusy(true)
    setFailure('')
    setProblems({})
    try {
      notify('good', await action(), undo?.())
      done()
    } catch (e) {
      const { message } = e as Error
      if (e instanceof InvalidField) setProblems({ [e.field === 'args' ? 'command' : e.field]: message.replace(/^upstreams\.[^:]*: /, '') })
      else setFailure(message)
    }
    setBusy(false)
  }
  return { busy, failure, problems, attempt: (action) => void attempt(action) }
}
