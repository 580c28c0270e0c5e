import { useState } from 'preact/hooks'
import { may } from '../api'
import { deedOf, scriptOf } from '../deed'
import { ago, count, when } from '../format'
import { call } from '../mcp'
import { ApprovalCard, decideApproval, Lines, shownApproval, whoOf, type Approval } from '../parts/approval'
import { Delegations, type Delegation } from '../parts/delegations'
import { Hint } from '../parts/hint'
import { PinCard, shownPin } from '../parts/pins'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { approveAll, decidePin, loadAwaiting, loadDecided, pinEvents, type Pin } from '../pins'
import { useData } from '../resource'
import { replace } from '../route'
import { usePageKeys } from '../shell/shortcuts'
import { attempt } from '../upstream'

interface Rule {
  id: string
  decision: string
  scope: string
  subject: string
  created_at: string
}

/** Something to decide, and its address below #/approvals. */
interface Item {
  path: string
  title: string
  state: string
  detail: string
  age?: string
  plan?: Approval['plan']
}

/** Approvals that scripts wait for and definitions that await review: a list, and the one to decide beside it. */
export function Approvals({ rest }: { rest: string }) {
  const waiting = useData((s) => call<{ approvals: Approval[]; remembered: Rule[]; delegations?: Delegation[] }>('approval_list', { status: 'pending', limit: 500 }, s), [], ['approval.'])
  const pins = useData((s) => (may('admin') ? loadAwaiting(s) : Promise.resolve([])), [], pinEvents)
  const [version, setVersion] = useState(0)
  const reload = () => {
    waiting.reload()
    pins.reload()
    setVersion((n) => n + 1)
  }
  const items = [...(waiting.data?.approvals ?? []).map(ofApproval), ...(pins.data ?? []).map(ofPin)]
  const chosen = rest || items[0]?.path || ''
  const act = useDecisions(items, chosen, reload)
  const error = waiting.error ?? pins.error
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {waiting.data && pins.data && items.length === 0 && !rest && (
        <section class="panel"><Hint>Nothing to decide. With `approve = "writes"` in luanette.toml, scripts ask before they change something; with `trust = "pin"` an administrator approves the definitions of a server's tools.</Hint></section>
      )}
      {(items.length > 0 || rest) && (
        <div class={rest ? 'split inbox chosen' : 'split inbox'}>
          <Queue items={items} chosen={chosen} pins={pins.data ?? []} reload={reload} />
          <section class="detail" aria-label="To decide">
            <p class="back"><a href="#/approvals">All</a></p>
            {chosen.startsWith('definition/') ? <PinCard key={chosen} id={chosen.slice(11)} decide={act.pin} /> : <ApprovalCard key={chosen} id={chosen} known={waiting.data?.approvals.find((a) => a.approval_id === chosen)} version={version} decide={act.approval} />}
            <Decided version={version} />
          </section>
        </div>
      )}
      {items.length === 0 && !rest && <Decided version={version} />}
      <Delegations list={waiting.data?.delegations ?? []} reload={waiting.reload} />
      <Remembered rules={waiting.data?.remembered ?? []} reload={waiting.reload} />
    </>
  )
}

function ofApproval(a: Approval): Item {
  return { path: a.approval_id, title: deedOf(a.subject, a.plan), state: a.status, plan: a.plan, detail: [scriptOf(a), whoOf(a) !== 'you' && whoOf(a), a.plan.length > 1 && count(a.plan.length, 'change')].filter(Boolean).join(' · '), age: ago(a.created_at) }
}

function ofPin(p: Pin): Item {
  return { path: `definition/${p.id}`, title: `${p.upstream}.${p.name}`, state: p.state, detail: p.flags && p.flags.length > 0 ? count(p.flags.length, 'warning') : `definition of a ${p.kind}` }
}

/** The decisions of the buttons and keys; after each the next item is chosen. */
function useDecisions(items: Item[], chosen: string, reload: () => void) {
  const at = items.findIndex((i) => i.path === chosen)
  const show = (index: number) => items[index] && replace(`approvals/${items[index].path}`)
  const next = () => {
    const other = items[at + 1] ?? items[at - 1]
    replace(other && at >= 0 ? `approvals/${other.path}` : 'approvals')
    reload()
  }
  const pin = (p: Pin, decision: 'approve' | 'refuse') => void decidePin(p, decision, next)
  const approval = (a: Approval, decision: 'allow' | 'deny') => void decideApproval(a, decision).then((done) => (done ? next() : reload()))
  const decide = (yes: boolean) => {
    const [asked, shown] = [shownApproval.value, shownPin.value]
    if (at < 0) return
    if (asked?.approval_id === chosen) approval(asked, yes ? 'allow' : 'deny')
    else if (shown && chosen === `definition/${shown.id}`) pin(shown, yes ? 'approve' : 'refuse')
  }
  usePageKeys({ j: () => show(at + 1), k: () => show(at - 1), a: () => decide(true), d: () => decide(false) })
  return { pin, approval }
}

/** How many items the list shows at most. */
const mostShown = 200

function Queue({ items, chosen, pins, reload }: { items: Item[]; chosen: string; pins: Pin[]; reload: () => void }) {
  const names = [...new Set(pins.map((p) => p.upstream))]
  return (
    <section class="menu" aria-label="Waiting">
      <p class="soft small"><span role="status">{items.length} to decide</span> <span class="keyhints"><kbd>j</kbd> <kbd>k</kbd> move, <kbd>a</kbd> allow, <kbd>d</kbd> deny</span></p>
      <ul class="list rows">
        {items.slice(0, mostShown).map((i) => (
          <li key={i.path}>
            <a href={`#/approvals/${i.path}`} aria-current={i.path === chosen ? 'true' : undefined}><span class="row spread"><b class="oneline">{i.title}</b>{i.age ? <span class="soft small">{i.age}</span> : <State state={i.state} />}</span><span class="soft small">{i.detail}{i.plan && <Lines plan={i.plan} />}</span></a>
          </li>
        ))}
      </ul>
      {items.length > mostShown && <p class="soft">and {items.length - mostShown} more</p>}
      {names.map((n) => <p key={n}><button type="button" onClick={() => void approveAll(n, () => { replace('approvals'); reload() })}>Approve all of {n} without warnings</button></p>)}
    </section>
  )
}

interface Decision {
  path: string
  subject: string
  state: string
  at: string
  by?: string
  about: string
  job?: string
}

const decisionColumns: Column<Decision>[] = [
  { name: 'Decided', value: (d) => d.at, cell: (d) => <time dateTime={d.at}>{when(d.at)}</time> },
  { name: 'Outcome', value: (d) => d.state, cell: (d) => <State state={d.state} /> },
  { name: 'What', value: (d) => d.subject, cell: (d) => <a class="mono" href={`#/approvals/${d.path}`}>{d.subject}</a>, class: 'breaks' },
  { name: 'For', value: (d) => d.about, cell: (d) => (d.job ? <a href={`#/jobs/${d.job}`}>{d.about}</a> : d.about) },
  { name: 'By', value: (d) => d.by ?? '', cell: (d) => d.by ?? '', class: 'breaks' },
]

/** What was decided lately. */
function Decided({ version }: { version: number }) {
  const { data, error } = useData(async (s) => {
    const [asked, pins] = await Promise.all([
      call<{ approvals: Approval[] }>('approval_list', { status: 'any', limit: 50 }, s),
      may('admin') ? loadDecided(s) : Promise.resolve([]),
    ])
    return [
      ...asked.approvals.filter((a) => a.status !== 'pending').map((a): Decision => ({ path: a.approval_id, subject: a.subject, state: a.status, at: a.decided_at ?? a.created_at, by: a.decided_by, about: scriptOf(a), job: a.job_id })),
      ...pins.map((p): Decision => ({ path: `definition/${p.id}`, subject: `${p.upstream}.${p.name}`, state: p.state, at: p.decided!, by: p.by, about: `definition of a ${p.kind}` })),
    ].sort((a, b) => b.at.localeCompare(a.at)).slice(0, 50)
  }, [version], ['approval.', ...pinEvents])
  if (data?.length === 0) return null
  return (
    <section class="panel" aria-label="Recent decisions">
      <h2>Recent decisions</h2>
      {error && <p class="bad">{error.message}</p>}
      {data && data.length > 0 && <Table label="Recent decisions" rows={data} columns={decisionColumns} id={(d) => d.path} />}
    </section>
  )
}

/** Decisions that apply to later requests too. */
function Remembered({ rules, reload }: { rules: Rule[]; reload: () => void }) {
  const forget = (id: string) => void attempt(() => call('approval_forget', { id }), 'decision forgotten').then(reload)
  if (rules.length === 0) return null
  return (
    <section class="panel" aria-label="Remembered decisions">
      <h2>Remembered decisions</h2>
      <ul class="list">
        {rules.map((r) => (
          <li key={r.id} class="row">
            <span class={r.decision === 'allow' ? 'good' : 'bad'}>{r.decision}</span> the {r.scope} <code>{r.subject}</code> <span class="soft small">since {ago(r.created_at)}</span>
            <button type="button" onClick={() => forget(r.id)}>Forget</button>
          </li>
        ))}
      </ul>
    </section>
  )
}
