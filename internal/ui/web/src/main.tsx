import { render } from 'preact'
import { effect } from '@preact/signals'
import { me, whoAmI } from './api'
import { App } from './app'
import { follow, leave } from './events'
import './style.css'

// What happens is followed by whoever was let in, and by nobody after.
let inside = false
effect(() => {
  if (me.value === undefined || inside === (me.value !== null)) return
  inside = me.value !== null
  if (inside) follow()
  else leave()
})

/** Asks until the server is there. */
async function enter(): Promise<void> {
  if ((await whoAmI()) === undefined) setTimeout(() => void enter(), 1000)
}

void enter()
render(<App />, document.getElementById('app')!)
