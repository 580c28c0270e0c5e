// Tool definitions that await review.
import { useState } from 'preact/hooks'
import { get, post } from '../api'
import { useData } from '../resource'
import { Hint } from './hint'
import { Json } from './json'
import { notify } from './notices'
import { State } from './state'

interface Pin {
  id: string
  upstream: string
  kind: string
  name: string
  state: string
  digest: string
  server: string
  flags?: { code: string; path: string; text: string }[]
}

interface PinDetail extends Pin {
  definition: unknown
  diff?: { path: string; old?: unknown; new?: unknown }[]
}

export function Pins() {
  const { data, error, reload } = useData(async (s) => {
    const [held, changed] = await Promise.all(['held', 'changed'].map((state) => get<{ pins: Pin[] }>(`/api/v1/pins?state=${state}`, s)))
    return [...changed.pins, ...held.pins]
  }, [], ['tool.held', 'tool.changed', 'tool.flagged', 'pin.', 'upstream.'])
  const names = [...new Set((data ?? []).map((p) => p.upstream))]
  const approveAll = async (upstream: string) => {
    try {
      const { approved, left } = await post<{ approved: unknown[]; left: unknown[] }>('/api/v1/pins/approve', { upstream, flagged: false })
      notify('good', `${approved.length} approved, ${left.length} not approved`)
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload()
  }
  if (error) return <p class="bad">{error.message}</p>
  return (
    <>
      {data?.length === 0 && <Hint>No definition awaits review. With `trust = "pin"` in luanette.toml, an administrator must approve the tools of an upstream before they can be used.</Hint>}
      <div class="row filters">{names.map((n) => <button key={n} type="button" onClick={() => void approveAll(n)}>Approve all of {n} without warnings</button>)}</div>
      <div class="cards">{data?.map((p) => <Card key={p.id + p.digest} pin={p} decided={reload} />)}</div>
    </>
  )
}

function Card({ pin: p, decided }: { pin: Pin; decided: () => void }) {
  const [shown, setShown] = useState(p.state === 'changed')
  const { data, error } = useData((s) => (shown ? get<PinDetail>(`/api/v1/pins/${encodeURIComponent(p.id)}`, s) : Promise.resolve(undefined)), [shown, p.id, p.digest])
  const decide = async (decision: string) => {
    try {
      await post(`/api/v1/pins/${encodeURIComponent(p.id)}/decide`, { decision, digest: p.digest })
      notify('good', `${p.upstream}.${p.name}: ${decision === 'approve' ? 'approved' : 'refused'}`)
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    decided()
  }
  return (
    <article class="card" aria-label={`definition of ${p.upstream}.${p.name}`}>
      <h3><code>{p.upstream}.{p.name}</code> <State state={p.state} /></h3>
      <p class="soft">{p.kind} of {p.server}</p>
      {p.flags?.map((f, i) => <p key={i} class="bad">{f.code} <span class="soft">in {f.path}:</span> {f.text}</p>)}
      {error && <p class="bad">{error.message}</p>}
      {data && ((data.diff ?? []).length > 0 ? <Changes diff={data.diff!} /> : <Json value={data.definition} />)}
      <div class="row">
        {!shown && <button type="button" onClick={() => setShown(true)}>Show</button>}
        <button type="button" class="main" onClick={() => void decide('approve')}>Approve</button>
        <button type="button" onClick={() => void decide('refuse')}>Refuse</button>
      </div>
    </article>
  )
}

/** The changes since the approved definition. */
function Changes({ diff }: { diff: NonNullable<PinDetail['diff']> }) {
  const text = (v: unknown) => (typeof v === 'string' ? v : JSON.stringify(v))
  return (
    <pre class="diff">
      {diff.map((d, i) => (
        <div key={i}>
          <div class="soft">{d.path}</div>
          {d.old !== undefined && <div class="bad">- {text(d.old)}</div>}
          {d.new !== undefined && <div class="good">+ {text(d.new)}</div>}
        </div>
      ))}
    </pre>
  )
}
