// The login to an upstream: a link for this browser, or a code to enter on another
// device.
import { useState } from 'preact/hooks'
import { get, may, post } from '../api'
import { when } from '../format'
import { isNeeded, loadLogins, loginEvents } from '../logins'
import { useData } from '../resource'
import { attempt, upstreamPath, type Upstream } from '../upstream'
import { Ask } from './ask'
import { State } from './state'

interface Status {
  logged_in: boolean
  issuer?: string
  scopes?: string[]
  expires?: string
  renews?: boolean
}

/** Whether somebody has logged in to a server over HTTP, and until when. Nothing is shown for one that needs no login. */
export function LoginState({ upstream: u }: { upstream: Upstream }) {
  const { data, reload } = useData((s) => get<Status>(upstreamPath(u.namespace, '/login'), s).catch(() => undefined), [u.namespace, u.state], ['upstream.'], (e) => e.data.upstream === u.namespace)
  if (u.state === 'needs_auth') return <><dt>Login</dt><dd class="bad">needed</dd></>
  if (!data?.logged_in) return null
  const logOut = () => void attempt(() => post(upstreamPath(u.namespace, '/login'), undefined, 'DELETE'), `logged out of ${u.namespace}`).then(reload)
  return (
    <>
      <dt>Login</dt>
      <dd>
        <span class="good">logged in</span> at {data.issuer}{data.scopes && data.scopes.length > 0 && `, scopes ${data.scopes.join(', ')}`}
        <span class="soft">{data.renews ? ', renewed by itself' : data.expires && `, until ${when(data.expires)}`}</span>
        {may('admin') && <Ask label="Log out" question={`Log out of ${u.namespace}? Somebody has to log in again before its tools can be used.`} yes="Log out" action={logOut} />}
      </dd>
    </>
  )
}

/** The user's own login to a server that everybody uses with their own account. */
export function YourLogin({ name }: { name: string }) {
  const { data } = useData(loadLogins, [], loginEvents)
  const login = data?.find((l) => l.upstream === name)
  if (!login) return null
  return (
    <>
      <dt>Your login</dt>
      <dd>{isNeeded(login) ? <><State state={login.state} /> <a class="button" href={login.connect}>Log in to {name}</a></> : <>{login.account ? `as ${login.account}` : 'active'} <a href="#/you">All your logins</a></>}</dd>
    </>
  )
}

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
  const begin = (method: string) => attempt(async () => setStarted(await post<StartedLogin>(address.slice(address.indexOf('/api/')), { method })))
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
