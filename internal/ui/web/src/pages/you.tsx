// What belongs to the user: logins to servers, keys, clients, secrets and data.
import { useState } from 'preact/hooks'
import { getIfAny, loadMe, me, post, urlOf } from '../api'
import { ago, when } from '../format'
import { endLogin, isNeeded, loadLogins, loginEvents, type OwnLogin } from '../logins'
import { Ask } from '../parts/ask'
import { Hint } from '../parts/hint'
import { Keys } from '../parts/keys'
import { OrgChoice, orgName } from '../parts/orgchoice'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { useData } from '../resource'
import { addressOf, isPerson, loadSharedWithMe, permits, type Share } from '../shares'
import { attempt } from '../upstream'
import { Skeleton } from '../parts/skeleton'

interface Grant {
  id: string
  client: string
  name: string
  scopes: string[]
  created: string
  used: string
}

interface Secret {
  name: string
  updated?: string
}

export function You() {
  const mine = useData(async (s) => {
    const [logins, grants, secrets] = await Promise.all([
      loadLogins(s),
      isPerson() ? getIfAny<{ grants: Grant[] }>('/api/v1/me/grants', s) : undefined,
      getIfAny<{ secrets: Secret[] }>('/api/v1/me/secrets', s),
    ])
    return { logins, grants: grants?.grants, secrets: secrets?.secrets }
  }, [me.value?.id], loginEvents)
  const { data, error, reload } = mine
  if (!data) return error ? <p class="bad">{error.message}</p> : <Skeleton />
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      <section class="panel" aria-label="Who you are"><Who /></section>
      <section class="panel" aria-label="Your logins"><h2>Your logins to servers</h2><Logins list={data.logins} reload={reload} /></section>
      {isPerson() && <section class="panel" aria-label="Shared with you"><h2>Shared with you</h2><Shared /></section>}
      {isPerson() && <section class="panel" aria-label="Your keys"><h2>Your keys</h2><Keys path="/api/v1/me/keys" none="No keys. A key lets a program act as you, with at most your rights." /></section>}
      {data.grants && <section class="panel" aria-label="Allowed clients"><h2>Clients that act for you</h2><Grants list={data.grants} reload={reload} /></section>}
      {data.secrets && <section class="panel" aria-label="Your secrets"><h2>Your secrets</h2><Secrets list={data.secrets} reload={reload} /></section>}
      {isPerson() && <section class="panel" aria-label="Your data"><h2>Your data</h2><Data /></section>}
    </>
  )
}

function Who() {
  const user = me.value!
  if (user.open) return <><h2>{user.name}</h2><Hint>You are the owner of this machine: this browser signed in by a link of the server. Other programs on it are guests, who may use tools. Keys, or an identity provider, tell people apart.</Hint></>
  return (
    <>
      <h2>{user.name}</h2>
      <dl class="facts">
        <dt>Signed in as</dt><dd class="mono">{user.id}</dd>
        {user.user && !user.id.includes(user.user) && <><dt>Person</dt><dd class="mono">{user.user}</dd></>}
        {((user.orgs?.length ?? 0) > 1 || user.org) && <><dt><label for="org">Organisation</label></dt><dd><Organisation /></dd></>}
        {user.roles && <><dt>Roles</dt><dd>{user.roles.map((r) => <span key={r} class="kind">{r}</span>)}</dd></>}
        <dt>Scopes</dt><dd>{user.scopes.join(', ')}</dd>
        {user.expires && <><dt>Until</dt><dd>{when(user.expires)}</dd></>}
      </dl>
      {!isPerson() && <Hint>This is the session of a key. People who sign in have logins, keys and data of their own here.</Hint>}
    </>
  )
}

/** The organisation for which the user acts, and the others to choose. */
function Organisation() {
  const user = me.value!
  if (!user.orgs || user.orgs.length < 2) return <>{orgName(user.org ?? '')}</>
  return <OrgChoice id="org" />
}

/** What others share with the user. */
function Shared() {
  const { data, error } = useData(loadSharedWithMe, [], ['share.'])
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <Skeleton />
  if (data.length === 0) return <Hint>Nothing. Colleagues share jobs, schedules, sessions, artifacts and scripts with the button `Share` of each.</Hint>
  return <Table label="Shared with you" rows={data} columns={sharedColumns} id={(s) => s.id} />
}

const sharedColumns: Column<Share>[] = [
  { name: 'What', value: (s) => s.title || s.thing, cell: (s) => <a class="name breaks" href={addressOf(s)}>{s.title || s.thing}</a> },
  { name: 'Kind', value: (s) => s.kind, cell: (s) => <span class="kind">{s.kind}</span> },
  { name: 'Of', value: (s) => s.owner, cell: (s) => s.owner },
  { name: 'You can', value: (s) => s.may, cell: (s) => <><b>{s.may}</b> <span class="soft">{permits[s.kind][s.may]}</span></> },
  { name: 'With', value: (s) => s.to_name, cell: (s) => <span class="soft">shared with {s.to_name} {ago(s.created)}</span> },
]

function Logins({ list, reload }: { list: OwnLogin[]; reload: () => void }) {
  const end = (name: string) => void attempt(() => endLogin(name), `logged out of ${name}`).then(reload)
  if (list.length === 0) return <Hint>{'No server here is used with accounts of single people. With `login = "each"` of a server, its tools act with your own account there.'}</Hint>
  const columns: Column<OwnLogin>[] = [
    { name: 'Server', value: (l) => l.upstream, cell: (l) => <a class="name" href={`#/servers/${encodeURIComponent(l.upstream)}`}>{l.upstream}</a> },
    { name: 'State', value: (l) => l.state, cell: (l) => <State state={l.state} /> },
    { name: 'Account', value: (l) => l.account ?? '', cell: (l) => <>{l.account}{l.scopes && l.scopes.length > 0 && <div class="soft small breaks">{l.scopes.join(', ')}</div>}</> },
    { name: 'Token', value: (l) => l.expires ?? '', cell: (l) => l.expires && <span class="soft">until {when(l.expires)}</span> },
    { name: '(Actions)', cell: (l) => (isNeeded(l) ? <a class="button main" href={l.connect}>Log in</a> : <Ask label="Log out" question={`Log out of ${l.upstream}? What acts for you there stops, also your jobs and schedules.`} yes="Log out" action={() => end(l.upstream)} />), class: 'row' },
  ]
  return <Table label="Your logins" rows={list} columns={columns} id={(l) => l.upstream} />
}

function Grants({ list, reload }: { list: Grant[]; reload: () => void }) {
  const revoke = (g: Grant) => void attempt(() => post(`/api/v1/me/grants/${encodeURIComponent(g.id)}`, undefined, 'DELETE'), `${g.name} may no longer act for you`).then(reload)
  if (list.length === 0) return <Hint>No client. A client that you connect, such as an editor or an agent, asks here first and is listed then.</Hint>
  const columns: Column<Grant>[] = [
    { name: 'Client', value: (g) => g.name, cell: (g) => <><b class="name">{g.name}</b><div class="soft small breaks">{g.client}</div></> },
    { name: 'Scopes', value: (g) => g.scopes.join(), cell: (g) => g.scopes.join(', ') },
    { name: 'Allowed', value: (g) => g.created, cell: (g) => <span class="soft">allowed {ago(g.created)}</span> },
    { name: 'Last use', value: (g) => g.used, cell: (g) => <span class="soft">used {ago(g.used)}</span> },
    { name: '(Actions)', cell: (g) => <Ask label="Revoke" question={`Take back what ${g.name} may do? It has to ask you again.`} yes={`Revoke ${g.name}`} action={() => revoke(g)} />, class: 'row' },
  ]
  return <Table label="Clients" rows={list} columns={columns} id={(g) => g.id} />
}

function Secrets({ list, reload }: { list: Secret[]; reload: () => void }) {
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const path = (n: string) => `/api/v1/me/secrets/${encodeURIComponent(n)}`
  const save = async () => {
    if (!(await attempt(() => post(path(name), { value }, 'PUT'), `${name} is stored`))) return
    setName('')
    setValue('')
    reload()
  }
  const remove = (n: string) => void attempt(() => post(path(n), undefined, 'DELETE'), `${n} deleted`).then(reload)
  return (
    <>
      <Hint>Values that a server takes from each person, such as their own API key. They are stored encrypted, and nobody is shown them again.</Hint>
      {list.length > 0 && <ul class="list" aria-label="Secrets">{list.map((s) => <li key={s.name} class="row spread"><span><code>{s.name}</code>{s.updated && <span class="soft small"> stored {ago(s.updated)}</span>}</span><Ask label="Delete" question={`Delete ${s.name}? Servers that need it cannot be used until it is stored again.`} yes={`Delete ${s.name}`} action={() => remove(s.name)} /></li>)}</ul>}
      <form class="newkey" onSubmit={(e) => { e.preventDefault(); void save() }}>
        <label>Name of a secret<input required pattern="[A-Za-z_][A-Za-z0-9_]*" title="letters, digits and _" value={name} placeholder="GITHUB_TOKEN" onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Value<input required type="password" autocomplete="off" value={value} onInput={(e) => setValue(e.currentTarget.value)} /></label>
        <button class="main" type="submit">Store secret</button>
      </form>
    </>
  )
}

/** The export and the erasure of what is stored about a person. */
function Data() {
  const erase = () => void attempt(async () => {
    await post('/api/v1/me', undefined, 'DELETE')
    await loadMe()
  })
  return (
    <>
      <Hint>Everything that is stored about you, as lines of JSON. To erase it also ends your sessions, keys, clients and jobs; the audit log keeps that something happened, not its content.</Hint>
      <div class="row actions">
        <a class="button" href={urlOf('/api/v1/me/export')} download>Export your data</a>
        <Ask label="Erase your data" question="Erase everything that is stored about you? This cannot be undone." yes="Erase everything" action={erase} />
      </div>
    </>
  )
}
