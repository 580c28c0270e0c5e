// The settings that take effect at once: they are changed here, and the change is written to the configuration file.
import { useState } from 'preact/hooks'
import { get, post } from '../api'
import { useData } from '../resource'
import { Hint } from './hint'
import { notify } from './notices'

interface Setting {
  key: string
  value: unknown
  kind: 'text' | 'bool' | 'number' | 'list'
  choices?: string[]
  fixed?: string // what sets it in place of the file
  help: string
}

export interface Settings {
  file: string
  changeable: boolean
  settings: Setting[]
  lines?: Record<string, number>
}

/** Where a setting is in the file: its name and line. */
export function placeOf(of: Settings | undefined, key: string): string {
  const line = of?.lines?.[key]
  return line ? `${of.file.split(/[\\/]/).pop()!}, line ${line}` : ''
}

/** Writes settings to the file; null removes one. The notice takes it back. */
export async function change(values: Record<string, unknown>, said: string): Promise<void> {
  try {
    const { before } = await post<{ before: Record<string, unknown> }>('/api/v1/setup/settings', { values }, 'PATCH')
    notify('good', said, () => void post('/api/v1/setup/settings', { values: before }, 'PATCH').then(() => notify('good', 'it is as before'), (e: Error) => notify('bad', e.message)))
  } catch (e) {
    notify('bad', (e as Error).message)
    throw e
  }
}

/** What a setting is about, without the pointer to the documentation and what the choices say already. */
const brief = (help: string) => help.replace(/; docs\/\S+$/, '')

export function LiveSettings({ shown, reload }: { shown: Settings; reload: () => void }) {
  const [find, setFind] = useState('')
  const matching = shown.settings.filter((s) => `${s.key} ${s.help}`.toLowerCase().includes(find.toLowerCase()))
  return (
    <>
      <Hint>{shown.changeable ? `They apply at once, and are written to \`${shown.file}\`.` : `They apply when \`${shown.file}\` is saved. They are changed here only by the owner, on the machine of the server.`}</Hint>
      <label class="hidden" for="live-words">Find a setting</label>
      <input id="live-words" type="search" placeholder="Find a setting" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
      <ul class="settings" aria-label="Settings">
        {matching.map((s) => (
          <li key={s.key}>
            <div><label class="name mono" for={`set-${s.key}`}>{s.key}</label><p class="soft small">{brief(s.help)}</p></div>
            <div><Field setting={s} changeable={shown.changeable && !s.fixed} done={reload} /><p class="soft small">{s.fixed ? `set by the ${s.fixed}` : placeOf(shown, s.key) || 'default'}</p></div>
          </li>
        ))}
      </ul>
      {matching.length === 0 && <Hint>No setting matches.</Hint>}
    </>
  )
}

/** The value of a setting; it is changed when a choice is made, or when a text is entered. */
function Field({ setting: s, changeable, done }: { setting: Setting; changeable: boolean; done: () => void }) {
  const [problem, setProblem] = useState('')
  const id = `set-${s.key}`
  const set = (value: unknown) => void change({ [s.key]: value }, `${s.key} is ${textOf(value) || 'empty'}`).then(() => { setProblem(''); done() }, (e: Error) => setProblem(e.message))
  const marks = { id, disabled: !changeable, 'aria-invalid': problem ? ('true' as const) : undefined }
  const below = problem && <p class="bad small problem" role="alert">{problem}</p>
  if (s.kind === 'bool') return <><input type="checkbox" {...marks} checked={s.value === true} onChange={(e) => set(e.currentTarget.checked)} />{below}</>
  if (s.choices) return <><select {...marks} value={textOf(s.value)} onChange={(e) => set(e.currentTarget.value)}>{s.choices.map((c) => <option key={c} value={c}>{c || 'none'}</option>)}</select>{below}</>
  const enter = (typed: string) => {
    if (typed === textOf(s.value)) return
    set(s.kind === 'number' ? Number(typed) : s.kind === 'list' ? typed.split(',').map((t) => t.trim()).filter(Boolean) : typed)
  }
  return <><input type={s.kind === 'number' ? 'number' : 'text'} step="any" {...marks} value={textOf(s.value)} placeholder={s.kind === 'list' ? 'separated by commas' : ''} onChange={(e) => enter(e.currentTarget.value)} />{below}</>
}

export const textOf = (value: unknown) => (Array.isArray(value) ? value.join(', ') : value === null || value === undefined ? '' : String(value))

/** The settings that can be changed here; nothing for who is no administrator. */
export const useSettings = (admin: boolean) => useData((s) => (admin ? get<Settings>('/api/v1/setup/settings', s) : Promise.resolve(undefined)), [admin], ['config.'])
