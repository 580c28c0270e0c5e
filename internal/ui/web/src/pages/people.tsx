import { Keys } from '../parts/keys'

/** Who may use this server. */
export function People() {
  return <section class="panel" aria-label="Keys"><Keys /></section>
}
