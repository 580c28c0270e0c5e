// The form to add or change a server that is reached at a URL.
import { useEffect, useRef, useState } from 'preact/hooks'
import { post } from '../api'
import { notify } from './notices'
import { upstreamPath, type Upstream } from '../upstream'

/** The dialog that changes a server. */
export function UpstreamForm({ upstream: u, close }: { upstream: Upstream; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="upstream-title" onClose={close}>
      <h2 id="upstream-title">Change {u.namespace}</h2>
      <UpstreamFields upstream={u} done={close} cancel={close} />
    </dialog>
  )
}

/** The settings of a server that is reached at a URL. */
export function UpstreamFields({ upstream: u, done, cancel }: { upstream?: Upstream; done: () => void; cancel?: () => void }) {
  const known = u?.settings
  const [name, setName] = useState(u?.namespace ?? '')
  const [url, setURL] = useState(known?.url ?? '')
  const [transport, setTransport] = useState(known?.transport || 'auto')
  const [protocol, setProtocol] = useState(known?.protocol || 'auto')
  const [headers, setHeaders] = useState<Header[]>((known?.headers ?? []).map((n) => ({ name: n, value: '', stored: true })))
  const [readOnly, setReadOnly] = useState(known?.read_only ?? false)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState('')
  const send = async () => {
    const body = {
      ...(url !== known?.url && { url }), transport, protocol, read_only: readOnly,
      headers: Object.fromEntries(headers.filter((h) => h.name).map((h) => [h.name, h.stored ? null : h.value])),
    }
    setBusy(true)
    try {
      if (u) await post(upstreamPath(u.namespace), body, 'PATCH')
      else await post('/api/v1/upstreams', { namespace: name, ...body })
      notify('good', u ? `${u.namespace} saved` : `${name} added, connecting`)
      done()
    } catch (e) {
      setFailure((e as Error).message) // a notice would be hidden behind the dialog
      setBusy(false)
    }
  }
  return (
      <form onSubmit={(e) => { e.preventDefault(); void send() }}>
        {!u && <><label for="space">Name</label><input id="space" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={name} onInput={(e) => setName(e.currentTarget.value)} /></>}
        <label for="url">URL</label><input id="url" required placeholder="https://example.org/mcp" value={url} onInput={(e) => setURL(e.currentTarget.value)} />
        <label for="transport">Transport</label>
        <select id="transport" value={transport} onChange={(e) => setTransport(e.currentTarget.value)}>{['auto', 'http', 'sse'].map((t) => <option key={t}>{t}</option>)}</select>
        <label for="protocol">Protocol</label>
        <select id="protocol" value={protocol} onChange={(e) => setProtocol(e.currentTarget.value)}>{['auto', 'legacy', 'modern'].map((t) => <option key={t}>{t}</option>)}</select>
        <Headers list={headers} change={setHeaders} />
        <label><input type="checkbox" checked={readOnly} onChange={(e) => setReadOnly(e.currentTarget.checked)} /> only read-only tools</label>
        {failure && <p class="bad" role="alert">{failure}</p>}
        <div class="row actions">
          <button class="main" type="submit" disabled={busy}>{u ? 'Save' : 'Connect'}</button>
          {cancel && <button type="button" onClick={cancel}>Cancel</button>}
        </div>
      </form>
  )
}

interface Header {
  name: string
  value: string
  stored: boolean // has a stored value, which the server does not return
}

/** Headers sent with every request. A stored value stays unless a new one is entered. */
function Headers({ list, change }: { list: Header[]; change: (list: Header[]) => void }) {
  const edit = (at: number, part: Partial<Header>) => change(list.map((h, i) => (i === at ? { ...h, ...part } : h)))
  return (
    <fieldset>
      <legend>Headers</legend>
      {list.map((h, i) => (
        <div class="header" key={i}>
          <input aria-label={`name of header ${i + 1}`} placeholder="Authorization" value={h.name} readOnly={h.stored} onInput={(e) => edit(i, { name: e.currentTarget.value })} />
          <input aria-label={`value of header ${i + 1}`} type="password" autocomplete="off" placeholder={h.stored ? 'unchanged' : 'Bearer …'} value={h.value} onInput={(e) => edit(i, { value: e.currentTarget.value, stored: false })} />
          <button type="button" aria-label={`remove header ${h.name || i + 1}`} onClick={() => change(list.filter((_, at) => at !== i))}>×</button>
        </div>
      ))}
      <button type="button" onClick={() => change([...list, { name: '', value: '', stored: false }])}>Add a header</button>
    </fieldset>
  )
}
