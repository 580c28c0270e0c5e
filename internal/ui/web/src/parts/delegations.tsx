// Who decides requests for approval in the place of somebody who is away.
import { useState } from 'preact/hooks'
import { me } from '../api'
import { when } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { isPerson, loadColleagues } from '../shares'
import { attempt } from '../upstream'
import { Hint } from './hint'

export interface Delegation {
  role: string
  from: string
  to: string
  to_id: string
  until: string
}

/** For how long to choose from. */
const spans: Record<string, string> = { '1d': 'a day', '3d': '3 days', '7d': 'a week', '14d': 'two weeks', '30d': '30 days', '90d': '90 days' }

/** The delegations by and to the user, and a form for another. Nothing for those without a role. */
export function Delegations({ list, reload }: { list: Delegation[]; reload: () => void }) {
  const roles = me.value?.roles ?? []
  const end = (d: Delegation) => void attempt(() => call('approval_delegate', { role: d.role, to: d.to_id, until: 'now' }), `you decide for ${d.role} yourself again`).then(reload)
  if (!isPerson() || (roles.length === 0 && list.length === 0)) return null
  return (
    <section class="panel" aria-label="Decisions in your place">
      <h2>Decisions in your place</h2>
      {list.length === 0 && <Hint>Nobody decides for you. When you are away, let a colleague decide what needs a role of yours.</Hint>}
      <ul class="list">
        {list.map((d) => {
          const mine = d.from === me.value?.name
          return <li key={`${d.from} ${d.role}`} class="row spread"><span>{mine ? d.to : 'You'} {mine ? 'decides' : 'decide'} for {mine ? 'you' : d.from} with the role <span class="kind">{d.role}</span> <span class="soft">until {when(d.until)}</span></span>{mine && <button type="button" onClick={() => end(d)}>End</button>}</li>
        })}
      </ul>
      {roles.length > 0 && <NewDelegation roles={roles} reload={reload} />}
    </section>
  )
}

function NewDelegation({ roles, reload }: { roles: string[]; reload: () => void }) {
  const { data } = useData(loadColleagues, [])
  const [role, setRole] = useState(roles[0])
  const [to, setTo] = useState('')
  const [until, setUntil] = useState('7d')
  const others = data?.people.filter((p) => p.id !== me.value?.id.split('/')[0]) ?? []
  const send = () => void attempt(() => call('approval_delegate', { role, to: to.replace('person:', ''), until }), `${others.find((p) => p.id === to)?.name} decides for ${role} in your place`).then(reload)
  return (
    <form class="newkey" onSubmit={(e) => { e.preventDefault(); send() }}>
      <label>Let<select required value={to} onChange={(e) => setTo(e.currentTarget.value)}><option value="">choose…</option>{others.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}</select></label>
      <label>decide for the role<select value={role} onChange={(e) => setRole(e.currentTarget.value)}>{roles.map((r) => <option key={r}>{r}</option>)}</select></label>
      <label>for<select value={until} onChange={(e) => setUntil(e.currentTarget.value)}>{Object.entries(spans).map(([v, text]) => <option key={v} value={v}>{text}</option>)}</select></label>
      <button class="main" type="submit">Delegate</button>
    </form>
  )
}
