import { render } from 'preact'
import { App } from './app'
import { follow } from './events'
import './style.css'

follow()
render(<App />, document.getElementById('app')!)
