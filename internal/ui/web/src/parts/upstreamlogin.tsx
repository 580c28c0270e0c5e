// A login at an upstream that wants one: a link for the person, and a code where
// the browser is elsewhere.
import { useState } from 'preact/hooks'
import { may, post } from '../api'
import { notify } from './notices'

interface Begun {
  url: string
  issuer: string
  scopes?: string[]
  user_code?: string
}

/** `address` is where the server says a login begins. */
export function UpstreamLogin({ name, address }: { name: string; address: string }) {
  const [begun, setBegun] = useState<Begun>()
  if (!may('admin')) return <p class="soft">An administrator has to log in there.</p>
  const begin = async (method: string) => {
    try {
      setBegun(await post<Begun>(new URL(address, location.origin).pathname, { method }))
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  if (begun) {
    return (
      <div role="status">
        <p>{/^https?:/.test(begun.url) ? <a href={begun.url} target="_blank" rel="noopener noreferrer">Log in at {begun.issuer}</a> : <code>{begun.url}</code>}</p>
        {begun.user_code && <p>and enter <code class="secret">{begun.user_code}</code></p>}
        {begun.scopes && begun.scopes.length > 0 && <p class="soft">It will be asked for: {begun.scopes.join(', ')}</p>}
      </div>
    )
  }
  return (
    <div class="row actions">
      <button type="button" class="main" onClick={() => void begin('browser')}>Log in to {name}</button>
      <button type="button" onClick={() => void begin('device')}>by code</button>
    </div>
  )
}
