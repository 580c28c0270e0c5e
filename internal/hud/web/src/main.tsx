import { render } from 'preact'

render(<main>Luanette</main>, document.getElementById('app')!)
