// The login to an upstream: a link for this browser, or a code to enter on another
// device.
import { useState } from 'preact/hooks'
import { may, post } from '../api'
import { notify } from './notices'

interface StartedLogin {
  url: string
  issuer: string
  scopes?: string[]
  user_code?: string
}

/** `address` is the server's login endpoint. */
export function UpstreamLogin({ name, address }: { name: string; address: string }) {
  const [started, setStarted] = useState<StartedLogin>()
  if (!may('admin')) return <p class="soft">An administrator must log in to this upstream.</p>
  const begin = async (method: string) => {
    try {
      setStarted(await post<StartedLogin>(new URL(address, location.origin).pathname, { method }))
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  if (started) {
    return (
      <div role="status">
        <p>{/^https?:/.test(started.url) ? <a href={started.url} target="_blank" rel="noopener noreferrer">Log in at {started.issuer}</a> : <code>{started.url}</code>}</p>
        {started.user_code && <p>and enter <code class="secret">{started.user_code}</code></p>}
        {started.scopes && started.scopes.length > 0 && <p class="soft">Requested scopes: {started.scopes.join(', ')}</p>}
      </div>
    )
  }
  return (
    <div class="row actions">
      <button type="button" class="main" onClick={() => void begin('browser')}>Log in to {name}</button>
      <button type="button" onClick={() => void begin('device')}>Log in with a code</button>
    </div>
  )
}
