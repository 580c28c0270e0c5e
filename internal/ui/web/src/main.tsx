import { render } from 'preact'
import { effect } from '@preact/signals'
import { loadMe, me } from './api'
import { App } from './app'
import { connect, disconnect } from './events'
import './style.css'

// The event stream is open while a user is logged in.
let loggedIn = false
effect(() => {
  if (me.value === undefined || loggedIn === (me.value !== null)) return
  loggedIn = me.value !== null
  if (loggedIn) connect()
  else disconnect()
})

/** Loads the user, and retries until the server is reachable. */
async function start(): Promise<void> {
  if ((await loadMe()) === undefined) setTimeout(() => void start(), 1000)
}

void start()
render(<App />, document.getElementById('app')!)
