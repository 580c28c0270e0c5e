// The form that changes a server where the configuration file has it.
import { useState } from 'preact/hooks'
import { useData } from '../resource'
import { changeDefinition, loadDefinition, loadSetup, type Definition, type ServerSettings } from '../setup'
import type { Upstream } from '../upstream'
import { Dialog } from './dialog'
import { difference, SettingField, settingsFor, useAttempt } from './fields'
import { Hint } from './hint'
import { notify } from './notices'
import { Skeleton } from './skeleton'

export function DefinitionForm({ upstream: u, close }: { upstream: Upstream; close: () => void }) {
  const setup = useData(loadSetup, [])
  const { data, error } = useData((s) => loadDefinition(u.namespace, s), [u.namespace])
  const elsewhere = error ? error.message : setup.data && !setup.data.programs ? 'This page does not decide what another machine runs.' : ''
  return (
    <Dialog title={`Edit ${u.namespace}`} wide close={close}>
      {elsewhere && <><p>{elsewhere} Change it in <code class="breaks">{u.configured_at ?? 'the configuration'}</code>: the file is read again when it changes.</p><div class="row actions"><button type="button" onClick={close}>Close</button></div></>}
      {data && setup.data && !elsewhere && <Fields definition={data} close={close} />}
      {!data && !error && <Skeleton />}
    </Dialog>
  )
}

/** The settings with the command line among them. */
const allOf = (d: Definition): ServerSettings => ({ ...d.settings, ...(d.command && { command: d.command }) })

/** The request for a difference: the command line is not among the settings. */
function bodyOf({ command, ...settings }: ServerSettings) {
  return { ...(command !== undefined && { command: String(command ?? '') }), ...(Object.keys(settings).length > 0 && { settings }) }
}

/** Values that stand for a secret cannot be written back. */
const isMarked = (changed: ServerSettings) => 'env' in changed || 'headers' in changed || /\[redacted\]|\(hidden\)|\?…/.test(JSON.stringify(changed))

/** Folders and hosts are shown where there is a sandbox that heeds them, or if they are set. */
function isUseful(name: string, values: ServerSettings): boolean {
  const level = String(values.sandbox ?? '')
  return values[name] !== undefined || !{ read: 1, write: 1, network: 1 }[name] || (name === 'network' ? level === 'strict' : level !== '' && level !== 'off')
}

function Fields({ definition: d, close }: { definition: Definition; close: () => void }) {
  const before = allOf(d)
  const names = settingsFor(before)
  const [values, setValues] = useState(before)
  const changed = difference(before, values, names)
  const back = difference(values, before, names)
  const undo = () => (isMarked(back) ? undefined : () => void changeDefinition(d.namespace, bodyOf(back)).then(() => notify('good', `${d.namespace}: taken back`), (e: Error) => notify('bad', e.message)))
  const { busy, failure, problems, attempt } = useAttempt(close, undo)
  const save = async () => {
    if (changed.command === null) throw new Error('A command is needed.')
    await changeDefinition(d.namespace, bodyOf(changed))
    return `${d.namespace} saved in ${d.place}, connecting again`
  }
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(save) }}>
      <p class="soft small">From <code class="breaks">{d.place}</code>. The rest of the file and its comments stay as they are.</p>
      {names.filter((n) => isUseful(n, values)).map((n) => <SettingField key={n} name={n} value={values[n]} problem={problems[n]} change={(v) => setValues((all) => ({ ...all, [n]: v }))} />)}
      {failure && <p class="bad" role="alert">{failure}</p>}
      {Object.keys(d.settings).some((k) => !names.includes(k) && k !== 'args') && <Hint>{`Other settings, which the file keeps: ${Object.keys(d.settings).filter((k) => !names.includes(k) && k !== 'args').map((k) => `\`${k}\``).join(', ')}`}</Hint>}
      <div class="row actions">
        <button class="main" type="submit" disabled={busy || Object.keys(changed).length === 0}>Save</button>
        <button type="button" onClick={close}>Cancel</button>
      </div>
    </form>
  )
}
