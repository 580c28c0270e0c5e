// The token of a key that was just made. It is above all pages: the first key of a server ends
// the sessions without one, and the token is shown only here.
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { login, post } from '../api'
import { attempt } from '../upstream'
import { Copy } from './copy'
import { Dialog } from './dialog'

export interface Made {
  id: string
  name: string
  token?: string
}

interface Shown extends Made {
  path: string // of the list that it is in
  first: boolean
}

const shown = signal<Shown | undefined>(undefined)

/** Shows the token of a new key until somebody says that it is stored. With the first key of a server this browser signs in. */
export async function showToken(key: Made, path: string, first: boolean): Promise<void> {
  shown.value = { ...key, path, first }
  if (first && key.token) await login(key.token)
}

export function NewToken() {
  const key = shown.value
  return key ? <Token key={key.id} of={key} /> : null
}

function Token({ of: key }: { of: Shown }) {
  const [stored, setStored] = useState(false)
  const close = () => { shown.value = undefined }
  const discard = () => void attempt(() => post(`${key.path}/${encodeURIComponent(key.id)}`, undefined, 'DELETE'), `${key.name} is discarded`).then(close)
  return (
    <Dialog title={`The key ${key.name}`} close={close} stays={() => !stored}>
      <p>Store it now: it is shown only once.{key.first && ' From now on every request needs a key. This browser is signed in with this one.'}</p>
      <div class="copied"><pre class="secret breaks">{key.token}</pre><Copy text={key.token ?? ''}>Copy</Copy></div>
      <label class="row"><input type="checkbox" checked={stored} onChange={(e) => setStored(e.currentTarget.checked)} /> I have stored the key</label>
      <div class="row actions">
        <button type="button" class="main" disabled={!stored} onClick={close}>Continue</button>
        {!key.first && <button type="button" onClick={discard}>Discard this key</button>}
      </div>
    </Dialog>
  )
}
