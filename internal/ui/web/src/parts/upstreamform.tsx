// The form to add or change a server that is reached at a URL.
import { useState } from 'preact/hooks'
import { post } from '../api'
import { nameOfAddress, type ServerSettings } from '../setup'
import { type Upstream } from '../upstream'
import { Dialog } from './dialog'
import { difference, SettingField, settingsFor, useAttempt } from './fields'

/** The dialog that changes a server. */
export function UpstreamForm({ upstream: u, path, close }: { upstream: Upstream; path?: string; close: () => void }) {
  return <Dialog title={`Edit ${u.namespace}`} close={close}><UpstreamFields upstream={u} path={path} done={close} cancel={close} /></Dialog>
}

interface Props {
  upstream?: Upstream
  address?: { text: string; change: (text: string) => void } // of a new server, which the other forms share
  path?: string // of the API
  done: () => void
  cancel?: () => void
}

/** The settings of a server that is reached at a URL. */
export function UpstreamFields({ upstream: u, address, path = '/api/v1/upstreams', done, cancel }: Props) {
  const before = u?.settings ?? {}
  const names = settingsFor({ url: '' })
  const [name, setName] = useState(u?.namespace)
  const [entered, setEntered] = useState<ServerSettings>(before)
  const values: ServerSettings = address ? { ...entered, url: address.text } : entered
  const { busy, failure, problems, attempt } = useAttempt(done)
  const chosen = name ?? nameOfAddress(String(values.url ?? ''))
  const send = async () => {
    const body = difference(before, values, names)
    if (u) await post(`${path}/${encodeURIComponent(u.namespace)}`, body, 'PATCH')
    else await post(path, { namespace: chosen, ...body })
    return u ? `${u.namespace} saved` : `${chosen} added, connecting`
  }
  const change = (key: string, v: unknown) => (key === 'url' && address ? address.change(String(v ?? '')) : setEntered((all) => ({ ...all, [key]: v })))
  const field = (key: string) => <SettingField key={key} name={key} required={key === 'url'} value={values[key]} problem={problems[key]} change={(v) => change(key, v)} />
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(send) }}>
      {field('url')}
      {!u && <><label for="space">Name</label><input id="space" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={chosen} onInput={(e) => setName(e.currentTarget.value)} /></>}
      {names.filter((n) => n !== 'url').map(field)}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <div class="row actions">
        <button class="main" type="submit" disabled={busy}>{u ? 'Save' : 'Connect'}</button>
        {cancel && <button type="button" onClick={cancel}>Cancel</button>}
      </div>
    </form>
  )
}
