// The button and the dialog with which somebody shares a thing, and the mark of what others share.
import { useId, useState } from 'preact/hooks'
import { me } from '../api'
import { useData } from '../resource'
import { addShare, isPerson, loadColleagues, loadShares, mayShare, permits, removeShare, type Colleagues, type Kind, type Level, type Owned, type Share } from '../shares'
import { Dialog } from './dialog'
import { useAttempt } from './fields'
import { Hint } from './hint'

interface Thing {
  kind: Kind
  id: string
  name: string
}

/** Shown to whom the thing belongs, on servers with people. */
export function ShareButton({ of: t, ...thing }: Thing & { of: Owned }) {
  const [open, setOpen] = useState(false)
  if (!mayShare(t)) return null
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>Share</button>
      {open && <Sharing {...thing} close={() => setOpen(false)} />}
    </>
  )
}

/** Who shares a thing with the user, and what they may do with it. */
export function SharedMark({ kind, of: t }: { kind: Kind; of: Owned }) {
  return t.shared ? <span class="kind" title={`You can ${permits[kind][t.shared] ?? t.shared}`}>{t.owner} shares it: {t.shared}</span> : null
}

/** The choice between all things, one's own and shared ones. */
export function Whose({ whose, setWhose }: { whose: string; setWhose: (v: string) => void }) {
  const id = useId()
  if (!isPerson()) return null
  return (
    <>
      <label for={id} class="hidden">Whose</label>
      <select id={id} value={whose} onChange={(e) => setWhose(e.currentTarget.value)}><option value="">of everybody</option><option value="mine">mine</option><option value="shared">shared with me</option></select>
    </>
  )
}

function Sharing({ kind, id, name, close }: Thing & { close: () => void }) {
  const shares = useData((s) => loadShares(kind, id, s), [kind, id])
  const colleagues = useData(loadColleagues, [])
  const error = shares.error ?? colleagues.error
  return (
    <Dialog title={`Share ${name}`} close={close}>
      {error && <p class="bad" role="alert">{error.message}</p>}
      {shares.data && colleagues.data && (
        <>
          <NewShare kind={kind} id={id} colleagues={colleagues.data} done={shares.reload} />
          <Holders list={shares.data} reload={shares.reload} />
        </>
      )}
      <div class="row actions"><button type="button" onClick={close}>Close</button></div>
    </Dialog>
  )
}

const everybody = () => (me.value?.org ? `everybody in ${me.value.org}` : 'everybody here')

function NewShare({ kind, id, colleagues: c, done }: { kind: Kind; id: string; colleagues: Colleagues; done: () => void }) {
  const [to, setTo] = useState('')
  const [level, setLevel] = useState<Level>('see')
  const { busy, failure, attempt } = useAttempt(() => { setTo(''); done() })
  const others = c.people.filter((p) => p.id !== me.value?.id.split('/')[0])
  const send = () => attempt(async () => `shared with ${(await addShare(kind, id, to, level)).to_name}`)
  return (
    <form onSubmit={(e) => { e.preventDefault(); send() }}>
      <label for="share-with">With</label>
      <select id="share-with" required value={to} onChange={(e) => setTo(e.currentTarget.value)}>
        <option value="">choose…</option>
        <option value="org">{everybody()}</option>
        {c.roles.length > 0 && <optgroup label="Everybody with a role">{c.roles.map((r) => <option key={r} value={`role:${r}`}>{r}</option>)}</optgroup>}
        {others.length > 0 && <optgroup label="People">{others.map((p) => <option key={p.id} value={p.id}>{[p.name, p.email].filter(Boolean).join(', ')}</option>)}</optgroup>}
      </select>
      <fieldset class="levels"><legend>They can</legend>
        {Object.entries(permits[kind]).map(([l, text]) => <label key={l}><input type="radio" name="level" checked={level === l} onChange={() => setLevel(l as Level)} /><span><b>{l}</b> <span class="soft">{l !== 'see' && 'also '}{text}</span></span></label>)}
      </fieldset>
      {failure && <p class="bad" role="alert">{failure}</p>}
      <button class="main" type="submit" disabled={busy}>Share</button>
    </form>
  )
}

/** Who has it. What is removed stays in the list until the dialog is closed, to be taken back. */
function Holders({ list, reload }: { list: Share[]; reload: () => void }) {
  const [removed, setRemoved] = useState<Share[]>([])
  const { failure, attempt } = useAttempt(reload)
  const gone = removed.filter((r) => !list.some((s) => s.to === r.to))
  const remove = (s: Share) => attempt(async () => {
    await removeShare(s.id)
    setRemoved([...gone, s])
    return `no longer shared with ${s.to_name}`
  })
  const back = (s: Share) => attempt(async () => `shared with ${(await addShare(s.kind, s.thing, s.to, s.may)).to_name} again`)
  return (
    <section aria-label="Shared with">
      <h3>Shared with</h3>
      {list.length + gone.length === 0 && <Hint>Nobody yet. A share never gives your rights or logins: whoever uses the thing acts as themselves.</Hint>}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <ul class="list">
        {list.map((s) => <li key={s.to} class="row spread"><span>{s.to_name} <span class="kind">{s.may}</span></span><button type="button" aria-label={`Remove ${s.to_name}`} onClick={() => remove(s)}>Remove</button></li>)}
        {gone.map((s) => <li key={s.to} class="row spread"><span class="soft"><s>{s.to_name}</s> removed</span><button type="button" aria-label={`Undo: share with ${s.to_name} again`} onClick={() => back(s)}>Undo</button></li>)}
      </ul>
    </section>
  )
}
