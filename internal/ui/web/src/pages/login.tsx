import { useState } from 'preact/hooks'
import { login } from '../api'

/** The door of a server that wants a key. */
export function Login() {
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState('')
  const enter = async () => {
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
    <form class="card login" onSubmit={(e) => { e.preventDefault(); void enter() }}>
      <label for="key">Key</label>
      <input id="key" class="wide" type="password" autocomplete="current-password" required value={key} onInput={(e) => setKey(e.currentTarget.value)} />
      {error && <p class="bad" role="alert">{error}</p>}
      <div class="row actions"><button class="main" type="submit" disabled={busy}>Log in</button></div>
      <p class="soft">`luanette key create NAME` on the server makes one. It stays on the server: this browser keeps a session of 12 hours.</p>
    </form>
  )
}
