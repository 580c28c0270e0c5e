import { useState } from 'preact/hooks'
import { login, openCommand, urlOf } from '../api'
import { Copy } from '../parts/copy'
import { Hint } from '../parts/hint'
import { useData } from '../resource'

/** The login page of a server that requires a key. */
export function Login() {
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  if (openCommand.value) return <OwnerSignIn />
  const submit = async () => {
    setBusy(true)
    setError('')
    try {
      await login(key.trim())
    } catch (e) {
      setError((e as Error).message)
    }
    setBusy(false)
  }
  return (
    <>
    <SignIn />
    <form class="card login" onSubmit={(e) => { e.preventDefault(); void submit() }}>
      <label for="key">Key</label>
      <input id="key" class="wide" type="password" autocomplete="current-password" required value={key} onInput={(e) => setKey(e.currentTarget.value)} />
      {error && <p class="bad" role="alert">{error}</p>}
      <div class="row actions"><button class="main" type="submit" disabled={busy}>Log in</button></div>
      <Hint>Create a key with `luanette key create NAME` on the server. This browser stores a session for 12 hours, not the key.</Hint>
    </form>
    </>
  )
}

/** How the owner of a server without keys signs in. */
const OwnerSignIn = () => <div class="card login"><p>Sign this browser in with <code>{openCommand.value}</code>, on this machine. <Copy text={openCommand.value}>Copy</Copy></p><Hint>The server also prints a link when it starts. Other programs on this machine are guests, who may use tools.</Hint></div>

/** The way in for people, if the server has an identity provider. */
function SignIn() {
  const { data } = useData((s) => fetch(urlOf('/.well-known/oauth-authorization-server'), { signal: s }).then(async (answer) => (await answer.text()) !== '' && answer.ok), [])
  if (!data) return null
  const next = encodeURIComponent(`/${location.hash}`)
  return <div class="card login"><a class="button main" href={urlOf(`/signin?next=${next}`)}>Sign in</a><Hint>With your account at your organisation. Programs use keys.</Hint></div>
}
