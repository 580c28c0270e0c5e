// API keys: all of the server, or those of one person.
import { useState } from 'preact/hooks'
import { get, may, post } from '../api'
import { ago, until } from '../format'
import { useData } from '../resource'
import { attempt } from '../upstream'
import { Hint } from './hint'
import { showToken } from './newtoken'
import { State } from './state'
import { Table, type Column } from './table'

interface Key {
  id: string
  name: string
  scopes: string[]
  org?: string
  user?: string
  namespaces?: string[]
  tools?: string[]
  rate?: number
  concurrent?: number
  budget?: number
  state: string
  fixed?: boolean
  created?: string
  expires?: string
  used?: string
  token?: string
}

/** Every scope, and what it permits. */
const scopes: Record<string, string> = {
  read: 'own events, traces and audit entries, and the configuration without secrets',
  mcp: 'tools, scripts, jobs, sessions and artifacts',
  chat: 'conversations with the agent',
  observe: 'with read: events, traces and audit entries of everybody',
  org: 'settings, servers and usage of one organisation, and what its people do',
  metrics: 'numbers about the whole server, for Prometheus',
  admin: 'everything',
}

/** The scopes that the user may give to a key. */
const ofUser = () => Object.keys(scopes).filter(may)

/** The keys at an address of the API: those of all, or those of the user. */
export function Keys({ path, none }: { path: string; none: string }) {
  const { data, error, reload } = useData((s) => get<{ keys: Key[] }>(path, s), [path], ['key.'])
  const revoke = (k: Key) => void attempt(() => post(`${path}/${encodeURIComponent(k.id)}`, undefined, 'DELETE'), `${k.name} revoked`).then(reload)
  const first = path === '/api/v1/keys' && data?.keys.length === 0
  const show = async (key: Key) => {
    await showToken(key, path, first)
    reload()
  }
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {data?.keys.length === 0 && <Hint>{none}</Hint>}
      {data && data.keys.length > 0 && <Table label="Keys" rows={data.keys} columns={columns(revoke)} id={(k) => k.id} />}
      {data && <NewKey key={String(first)} path={path} first={first} created={show} />}
    </>
  )
}

function columns(revoke: (k: Key) => void): Column<Key>[] {
  return [
    { name: 'Key', value: (k) => k.name, cell: (k) => <><b class="name breaks">{k.name}</b>{k.created && <span class="second">made {ago(k.created)}</span>}</> },
    { name: 'May', value: (k) => k.scopes.join(), cell: (k) => <>{rights(k.scopes)}<span class="second breaks">{restrictions(k)}</span></> },
    { name: 'Last use', value: (k) => k.used ?? '', cell: (k) => <span class="soft">{k.used ? ago(k.used) : 'never'}</span> },
    { name: 'Expires', value: (k) => k.expires ?? '', cell: (k) => (k.state === 'active' ? <span class="soft">{k.expires ? until(k.expires) : 'never'}</span> : <State state={k.state} />) },
    { name: '(Actions)', cell: (k) => k.state === 'active' && (k.fixed ? <span class="soft">in luanette.toml</span> : <button type="button" aria-label={`Revoke ${k.name}`} onClick={() => revoke(k)}>Revoke</button>), class: 'num' },
  ]
}

/** What scopes permit, in a few words. */
function rights(of: string[]): string {
  if (of.includes('admin')) return 'do everything'
  const text = of.map((s) => brief[s] ?? s).join(', ')
  return text || 'nothing'
}

const brief: Record<string, string> = { read: 'see its own activity', mcp: 'use tools and scripts', chat: 'chat', observe: 'see what everybody does', org: 'manage its organisation', metrics: 'read metrics' }

/** What a key is limited to, beside its scopes. */
function restrictions(k: Key): string {
  const per = (n: number | undefined, what: string) => (n ? `${n} ${what}` : '')
  return [k.org && `organisation ${k.org}`, k.user && `for ${k.user}`, k.namespaces && `servers ${k.namespaces.join(', ')}`, k.tools && `tools ${k.tools.join(', ')}`,
    per(k.rate, 'requests a minute'), per(k.concurrent, 'calls at a time'), per(k.budget, 'calls a day')].filter(Boolean).join('; ')
}

/** The times of life to choose from; `day` is a day of the calendar. */
const lives: Record<string, string> = { '7d': '7 days', '30d': '30 days', '90d': '90 days', '365d': 'a year', day: 'on a day…', never: 'never' }

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean)

/** The form for a new key. The first key of a server is an administrator's: from then on everybody needs one. */
function NewKey({ path, first, created }: { path: string; first: boolean; created: (key: Key) => Promise<void> }) {
  const [chosen, setChosen] = useState<string[]>(() => first ? ['admin'] : ofUser().filter((s) => s === 'read' || s === 'mcp'))
  const [life, setLife] = useState('90d')
  const forAll = path === '/api/v1/keys' // those of the user have their organisation
  const create = async (form: HTMLFormElement) => {
    const given = (name: string) => String(new FormData(form).get(name) ?? '')
    const limits = Object.fromEntries(['rate', 'concurrent', 'budget'].map((n) => [n, Number(given(n))]).filter(([, n]) => n))
    const texts = Object.fromEntries([['namespaces', words(given('namespaces'))], ['tools', words(given('tools'))], ['org', given('org')]].filter(([, v]) => v.length > 0))
    await attempt(async () => {
      await created(await post<Key>(path, { name: given('name'), scopes: chosen, expires: life === 'day' ? given('day') : life, ...limits, ...texts }))
      form.reset()
    })
  }
  const number = (name: string, label: string) => <label>{label}<input name={name} type="number" min={1} class="short" /></label>
  return (
    <form class="newkey" onSubmit={(e) => { e.preventDefault(); void create(e.currentTarget) }}>
      <label>Name of a new key<input name="name" required placeholder={first ? 'administrator' : 'laptop'} /></label>
      {first ? <p class="soft">It may do everything: whoever has it administers this server.</p> : <fieldset><legend>It may</legend>
        <div class="row">{ofUser().map((s) => <label key={s} title={`${s}: ${scopes[s]}`}><input type="checkbox" checked={chosen.includes(s)} onChange={() => setChosen(chosen.includes(s) ? chosen.filter((x) => x !== s) : [...chosen, s])} /> {s === 'admin' ? 'do everything' : brief[s] ?? s}</label>)}</div>
      </fieldset>}
      <label>Expires<select value={life} onChange={(e) => setLife(e.currentTarget.value)}>{Object.entries(lives).map(([v, text]) => <option key={v} value={v}>{text}</option>)}</select></label>
      {life === 'day' && <label>Day<input name="day" type="date" required min={new Date().toISOString().slice(0, 10)} /></label>}
      <details><summary>Restrict it</summary>
        <div class="newkey">
          {forAll && <label>Organisation<input name="org" placeholder="acme" /></label>}
          <label>Only these servers<input name="namespaces" placeholder="github, files" /></label>
          <label>Only these tools<input name="tools" placeholder="github.get_*, search_tools" /></label>
          {number('rate', 'Requests a minute')}{number('concurrent', 'Calls at a time')}{number('budget', 'Calls a day')}
        </div>
      </details>
      <button class="main" type="submit">Create key</button>
    </form>
  )
}
