// Earlier and later versions of the script in the editor, and how it differs from them.
import { useState } from 'preact/hooks'
import { Diff } from '../parts/diff'
import { notify } from '../parts/notices'
import { useData } from '../resource'
import { sourceOf, versionsOf } from '../versions'
import type { Draft } from './draft'

export function Versions({ draft, load }: { draft: Draft; load: (code: string) => void }) {
  const { data } = useData((s) => (draft.parent ? versionsOf(draft.parent, s) : Promise.resolve([])), [draft.parent], ['script.'])
  const [against, setAgainst] = useState('')
  const other = useData((s) => (against ? sourceOf(against, s) : Promise.resolve(undefined)), [against])
  if (!draft.parent) return null
  const all = new Map((data ?? []).map((v) => [v.hash, v.label]))
  if (!all.has(draft.parent)) all.set(draft.parent, `saved, ${draft.parent.slice(0, 12)}`)
  return (
    <section class="panel" aria-label="Versions">
      <h2>Versions</h2>
      <div class="row">
        <label for="version">Compare with</label>
        <select id="version" value={against} onChange={(e) => setAgainst(e.currentTarget.value)}>
          <option value="">none</option>
          {[...all].map(([hash, label]) => <option key={hash} value={hash}>{label}</option>)}
        </select>
        {other.data !== undefined && other.data !== draft.code && <button type="button" onClick={() => { load(other.data!); notify('good', `${all.get(against)} is in the editor; Ctrl+Z brings your text back`) }}>Load into the editor</button>}
        <a href={`#/scripts/${draft.parent}`}>Script page</a>
      </div>
      {other.error && <p class="bad">{other.error.message}</p>}
      {other.data !== undefined && <Diff before={other.data} after={draft.code} />}
    </section>
  )
}
