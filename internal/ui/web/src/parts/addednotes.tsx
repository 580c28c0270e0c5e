import { addedNotes } from '../setup'
import { Hint } from './hint'

/** What the sandbox of a server that was just added means, until somebody has read it. */
export function AddedNotes() {
  if (addedNotes.value.length === 0) return null
  return (
    <section class="panel" aria-label="Added servers" role="status">
      {addedNotes.value.map((a) => <div key={a.namespace}><h3><a href={`#/servers/${encodeURIComponent(a.namespace)}`}>{a.namespace}</a> was added</h3>{a.notes?.map((n) => <Hint key={n}>{n}</Hint>)}</div>)}
      <button type="button" onClick={() => (addedNotes.value = [])}>Understood</button>
    </section>
  )
}
