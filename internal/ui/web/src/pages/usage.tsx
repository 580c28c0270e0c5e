import { get, getIfAny, me, post } from '../api'
import { user, type Usage as Tokens } from '../chat/conversation'
import { dollars } from '../chat/turn'
import { tokensText } from '../activity/model'
import { ago, count, when } from '../format'
import { Chart } from '../parts/chart'
import { Hint } from '../parts/hint'
import { Until } from '../parts/now'
import { Quota } from '../parts/quota'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { useData } from '../resource'
import { useFilter } from '../route'
import { attempt } from '../upstream'

interface Spent extends Tokens {
  turns: number
  cache_creation_input_tokens: number
}

interface Report {
  user_id?: string
  total: Spent
  days: (Spent & { day: string })[]
  people: (Spent & { user_id: string })[]
  turns: (Tokens & { request_id: string; user_id: string; began: string; model: string; requests: number })[]
  budgets: Budget[]
}

interface Budget {
  setting: string
  limit: number
  used: number
}

const tokensIn = (s: Tokens & { cache_creation_input_tokens?: number }) => s.input_tokens + (s.cache_read_input_tokens ?? 0) + (s.cache_creation_input_tokens ?? 0)
const number = (n: number) => n.toLocaleString()

/** All people's usage if this key may see it, otherwise its own. */
async function loadUsage(days: string, who: string, signal: AbortSignal): Promise<Report> {
  const own = () => get<Report>(`/api/v1/usage?days=${days}&user_id=${encodeURIComponent(who || user())}`, signal)
  if (who) return own()
  const [all, mine] = await Promise.allSettled([get<Report>(`/api/v1/usage?days=${days}`, signal), own()])
  if (all.status === 'rejected') {
    if (mine.status === 'rejected') throw mine.reason as Error
    return mine.value
  }
  // Budgets of one person are those of this user.
  const budgets = all.value.budgets.map((b) => (mine.status === 'fulfilled' && b.setting.startsWith('person_') ? mine.value.budgets.find((m) => m.setting === b.setting) ?? b : b))
  return { ...all.value, budgets }
}

/** What the model used and cost, by day, person and turn. */
export function Usage() {
  const [days, setDays] = useFilter('days', '30')
  const [who, setWho] = useFilter('who')
  const { data, error } = useData((s) => loadUsage(days, who, s), [days, who], ['chat.turn_ended'])
  return (
    <>
      <div class="row filters">
        <div class="segments" role="group" aria-label="Time">{['7', '30', '90'].map((d) => <button key={d} type="button" aria-pressed={days === d} onClick={() => setDays(d)}>{d} days</button>)}</div>
        {who && <button type="button" aria-label={`show everybody, not only ${who}`} onClick={() => setWho('')}>{who} ×</button>}
      </div>
      {error && <p class="bad">{error.message}</p>}
      {data && <Shown report={data} choose={setWho} span={Number(days)} />}
      <Callbacks />
    </>
  )
}

interface Callback {
  id: string
  origin: string
  user_id: string
  state: string
  tries: { at: string; status?: number; error?: string }[]
  created_at: string
  next_at?: string
}

/** Answers on their way to the callbacks that their senders named. */
function Callbacks() {
  const org = me.value?.org || 'default'
  const { data, reload } = useData((s) => getIfAny<{ callbacks: Callback[] }>(`/api/v1/admin/orgs/${encodeURIComponent(org)}/callbacks`, s), [org], ['chat.turn_finished'], undefined, 10_000)
  if (!data?.callbacks.length) return null
  const again = (c: Callback) => void attempt(() => post(`/api/v1/chat/${encodeURIComponent(c.id)}/callback`, undefined), `sent to ${c.origin} again`).then(reload)
  const columns: Column<Callback>[] = [
    { name: 'State', value: (c) => c.state, cell: (c) => <State state={c.state} /> },
    { name: 'Receiver', value: (c) => c.origin, cell: (c) => <><span class="mono breaks">{c.origin}</span>{c.state !== 'delivered' && <div class="bad small brief">{c.tries.at(-1)?.error}</div>}</> },
    { name: 'Person', value: (c) => c.user_id, cell: (c) => c.user_id },
    { name: 'Answered', value: (c) => c.created_at, cell: (c) => <time class="soft" dateTime={c.created_at}>{ago(c.created_at)}</time> },
    { name: 'Tries', value: (c) => c.tries.length, cell: (c) => c.tries.length, number: true },
    { name: 'Next try', value: (c) => c.next_at ?? '', cell: (c) => c.next_at && <Until time={Date.parse(c.next_at)} /> },
    { name: '(Actions)', cell: (c) => c.state !== 'delivered' && <button type="button" onClick={() => again(c)}>Send now</button>, class: 'row' },
  ]
  return <section class="panel" aria-label="Callbacks"><h2>Callbacks</h2><Table label="Callbacks" rows={data.callbacks} columns={columns} id={(c) => c.id} /></section>
}

/** Each day of a time until today, those without answers, too. */
function everyDay(days: Report['days'], span: number): Pick<Report['days'][number], 'day' | 'cost_usd' | 'input_tokens' | 'output_tokens'>[] {
  const known = new Map(days.map((d) => [d.day, d]))
  return Array.from({ length: span }, (_, i) => {
    const name = new Date(Date.now() - (span - 1 - i) * 86_400_000).toISOString().slice(0, 10)
    const d = known.get(name)
    return { day: name, cost_usd: d?.cost_usd ?? 0, input_tokens: d ? tokensIn(d) : 0, output_tokens: d?.output_tokens ?? 0 }
  })
}

function Shown({ report: r, choose, span }: { report: Report; choose: (who: string) => void; span: number }) {
  const days = everyDay(r.days, span)
  const times = days.map((d) => Date.parse(`${d.day}T12:00`) / 1000)
  if (r.total.turns === 0) return <><Budgets list={r.budgets} /><Hint>No message was answered in this time.</Hint></>
  return (
    <>
      <ul class="numbers">
        <li><span class="number"><b>{dollars(r.total.cost_usd)}</b>cost</span></li>
        <li><span class="number"><b>{number(r.total.turns)}</b>answers</span></li>
        <li><span class="number"><b>{number(tokensIn(r.total))}</b>input tokens, {number(r.total.cache_read_input_tokens ?? 0)} cached</span></li>
        <li><span class="number"><b>{number(r.total.output_tokens)}</b>output tokens</span></li>
      </ul>
      <Budgets list={r.budgets} />
      <div class="columns">
        <section class="panel" aria-label="Cost per day"><h2>Cost per day</h2>
          <Chart label="cost per day" byDay times={times} lines={[{ label: 'cost', values: days.map((d) => d.cost_usd), colour: '--accent', kind: 'bars' }]} format={dollars} />
        </section>
        <section class="panel" aria-label="Tokens per day"><h2>Tokens per day <span class="legend small soft"><i class="bar" /> in <i class="bar second" /> out</span></h2>
          <Chart label="tokens per day" byDay times={times} lines={[{ label: 'in', values: days.map((d) => d.input_tokens), colour: '--accent', kind: 'bars' }, { label: 'out', values: days.map((d) => d.output_tokens), colour: '--warn', kind: 'bars' }]} format={tokensText} />
        </section>
      </div>
      <div class="columns">
        <section class="panel"><h2>Days</h2><Table label="Days" rows={r.days} id={(d) => d.day} columns={[{ name: 'Day', value: (d) => d.day, cell: (d) => d.day }, ...sums<Report['days'][number]>()]} /></section>
        <section class="panel"><h2>People</h2><Table label="People" rows={r.people} id={(p) => p.user_id} columns={[{ name: 'Person', value: (p) => p.user_id, cell: (p) => <button type="button" class="tag" onClick={() => choose(p.user_id)}>{p.user_id}</button> }, ...sums<Report['people'][number]>()]} /></section>
      </div>
      <section class="panel"><h2>Turns <span class="soft">({count(r.turns.length, 'latest', 'latest')})</span></h2><Table label="Turns" rows={r.turns} id={(t) => t.request_id} columns={turnColumns} /></section>
    </>
  )
}

function sums<T extends Spent>(): Column<T>[] {
  return [
    { name: 'Answers', value: (s) => s.turns, cell: (s) => number(s.turns), number: true },
    { name: 'In', value: tokensIn, cell: (s) => number(tokensIn(s)), number: true },
    { name: 'Out', value: (s) => s.output_tokens, cell: (s) => number(s.output_tokens), number: true },
    { name: 'Cost', value: (s) => s.cost_usd, cell: (s) => dollars(s.cost_usd), number: true },
  ]
}

const turnColumns: Column<Report['turns'][number]>[] = [
  { name: 'Time', value: (t) => t.began, cell: (t) => <time dateTime={t.began}>{when(t.began)}</time> },
  { name: 'Person', value: (t) => t.user_id, cell: (t) => t.user_id },
  { name: 'Model', value: (t) => t.model, cell: (t) => <span class="mono">{t.model}</span> },
  { name: 'Requests', value: (t) => t.requests, cell: (t) => t.requests, number: true },
  { name: 'In', value: tokensIn, cell: (t) => number(tokensIn(t)), number: true },
  { name: 'Out', value: (t) => t.output_tokens, cell: (t) => number(t.output_tokens), number: true },
  { name: 'Cost', value: (t) => t.cost_usd, cell: (t) => dollars(t.cost_usd), number: true },
]

function Budgets({ list }: { list: Budget[] }) {
  const show = (b: Budget, n: number) => (b.setting.endsWith('usd') ? dollars(n) : `${number(n)} tokens`)
  return (
    <section class="panel" aria-label="Budgets">
      <h2>Budgets</h2>
      {list.length === 0 && <Hint>None. `[chat.budget]` in luanette.toml limits what a person, an organisation and everybody may use.</Hint>}
      {list.map((b) => <Quota key={b.setting} name={b.setting} used={b.used} limit={b.limit} show={(n) => show(b, n)} />)}
    </section>
  )
}
