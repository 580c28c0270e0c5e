// A tool definition that awaits review, or about which was decided.
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { ago } from '../format'
import { loadPin, pinEvents, type Pin, type PinDetail } from '../pins'
import { useData } from '../resource'
import { Definition, type ToolDefinition } from './definition'
import { Json } from './json'
import { State } from './state'
import { Skeleton } from './skeleton'

/** The definition that a person sees: only that one may be decided with a key. */
export const shownPin = signal<Pin | undefined>(undefined)

export function PinCard({ id, decide }: { id: string; decide: (p: Pin, decision: 'approve' | 'refuse') => void }) {
  const { data: p, error } = useData((s) => loadPin(id, s), [id], pinEvents)
  useLayoutEffect(() => {
    shownPin.value = p
    return () => (shownPin.value = undefined)
  }, [p])
  if (error) return <p class="bad">{error.message}</p>
  if (!p) return <Skeleton />
  return (
    <article class="panel" aria-label={`definition of ${p.upstream}.${p.name}`}>
      <div class="row title"><h2><code>{p.upstream}.{p.name}</code></h2><State state={p.state} /></div>
      <p class="soft">{p.kind} of <a href={`#/servers/${encodeURIComponent(p.upstream)}`}>{p.upstream}</a> <span class="mono breaks">{p.server}</span>{p.decided && `, decided ${ago(p.decided)}${p.by ? ` by ${p.by}` : ''}`}</p>
      {p.flags?.map((f, i) => <p key={i} class="bad"><b>{f.code}</b> <span class="soft">in {f.path}:</span> {f.text}</p>)}
      <Shown pin={p} />
      <Changes pin={p} />
      <div class="row actions">
        {p.state !== 'approved' && <button type="button" class="main" onClick={() => decide(p, 'approve')}>Approve <kbd>a</kbd></button>}
        {p.state !== 'refused' && <button type="button" onClick={() => decide(p, 'refuse')}>Refuse <kbd>d</kbd></button>}
      </div>
    </article>
  )
}

/** The definition in words; as JSON if it is not that of a tool. */
function Shown({ pin: p }: { pin: PinDetail }) {
  if (p.kind !== 'tool' || typeof p.definition !== 'object' || p.definition === null) return <Json value={p.definition} />
  const before = p.state === 'changed' ? (p.approved_definition as ToolDefinition | undefined) : undefined
  return <Definition before={before} after={p.definition as ToolDefinition} />
}

/** Every change since the approved definition, as the server compares them. */
function Changes({ pin: p }: { pin: PinDetail }) {
  const diff = p.diff ?? []
  if (p.state !== 'changed' || diff.length === 0) return null
  return (
    <details>
      <summary>All changes, by their place in the definition ({diff.length})</summary>
      <pre class="diff">
        {diff.map((d, i) => (
          <div key={i}>
            <div class="soft">{d.path}</div>
            {d.old !== undefined && <div class="bad">- {d.old}</div>}
            {d.new !== undefined && <div class="good">+ {d.new}</div>}
          </div>
        ))}
      </pre>
    </details>
  )
}
