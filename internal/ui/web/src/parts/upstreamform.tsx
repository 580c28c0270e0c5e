// The form to add or change a server that is reached at a URL.
import { useState } from 'preact/hooks'
import { post } from '../api'
import { nameOfAddress } from '../setup'
import { type Upstream } from '../upstream'
import { Dialog } from './dialog'
import { Names, useAttempt } from './fields'

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
  const known = u?.settings
  const [name, setName] = useState(u?.namespace)
  const [changed, setChanged] = useState(known?.url ?? '')
  const url = address?.text ?? changed
  const [transport, setTransport] = useState(known?.transport || 'auto')
  const [protocol, setProtocol] = useState(known?.protocol || 'auto')
  const [headers, setHeaders] = useState<Record<string, string | null>>(Object.fromEntries((known?.headers ?? []).map((n) => [n, null])))
  const [readOnly, setReadOnly] = useState(known?.read_only ?? false)
  const { busy, failure, attempt } = useAttempt(done)
  const chosen = name ?? nameOfAddress(url)
  const send = async () => {
    const body = { ...(url !== known?.url && { url }), transport, protocol, read_only: readOnly, headers }
    if (u) await post(`${path}/${encodeURIComponent(u.namespace)}`, body, 'PATCH')
    else await post(path, { namespace: chosen, ...body })
    return u ? `${u.namespace} saved` : `${chosen} added, connecting`
  }
  return (
      <form onSubmit={(e) => { e.preventDefault(); attempt(send) }}>
        <label for="url">URL</label><input id="url" required placeholder="https://example.org/mcp" value={url} onInput={(e) => (address?.change ?? setChanged)(e.currentTarget.value)} />
        {!u && <><label for="space">Name</label><input id="space" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={chosen} onInput={(e) => setName(e.currentTarget.value)} /></>}
        <label for="transport">Transport</label>
        <select id="transport" value={transport} onChange={(e) => setTransport(e.currentTarget.value)}>{['auto', 'http', 'sse'].map((t) => <option key={t}>{t}</option>)}</select>
        <label for="protocol">Protocol</label>
        <select id="protocol" value={protocol} onChange={(e) => setProtocol(e.currentTarget.value)}>{['auto', 'legacy', 'modern'].map((t) => <option key={t}>{t}</option>)}</select>
        <Names label="Headers" value={headers} change={setHeaders} />
        <label><input type="checkbox" checked={readOnly} onChange={(e) => setReadOnly(e.currentTarget.checked)} /> only read-only tools</label>
        {failure && <p class="bad" role="alert">{failure}</p>}
        <div class="row actions">
          <button class="main" type="submit" disabled={busy}>{u ? 'Save' : 'Connect'}</button>
          {cancel && <button type="button" onClick={cancel}>Cancel</button>}
        </div>
      </form>
  )
}
