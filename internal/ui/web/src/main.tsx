import { render } from 'preact'
import { begin, loadMe, may, me } from './api'
import { App } from './app'
import { callsPath } from './calls'
import { connect, disconnect } from './events'
import { route } from './route'
import { whenIdle } from './shell/lazy'
import { loadAhead, loadPage } from './shell/pages'
import 'uplot/dist/uPlot.min.css'
import './style.css'

/** What the overview shows first. */
const overview = [callsPath('1h'), '/api/v1/upstreams', '/api/v1/nodes', '/health']

/** Loads the user, and retries until the server is reachable. */
async function start(): Promise<void> {
  if ((await loadMe()) === undefined) setTimeout(() => void start(), 1000)
}

// The event stream is open while a user is logged in. It begins after the first picture.
let loggedIn = false
me.subscribe((user) => {
  if (user === undefined || loggedIn === (user !== null)) return
  loggedIn = user !== null
  if (!loggedIn) return disconnect()
  if (may('read') && /^(overview)?$/.test(route.value.page)) begin(overview)
  whenIdle(() => loggedIn && connect())
  setTimeout(() => whenIdle(() => loadAhead()), 1000)
})

loadPage(route.value.page)
void start()
render(<App />, document.getElementById('app')!)
