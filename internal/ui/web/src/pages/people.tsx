// Who may use this server: people who sign in, and keys of programs.
import { get, me, post } from '../api'
import { ago, count } from '../format'
import { Ask } from '../parts/ask'
import { Command } from '../parts/command'
import { Hint } from '../parts/hint'
import { Keys } from '../parts/keys'
import { Memberships, type Person } from '../parts/memberships'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { useData } from '../resource'
import { useFilter } from '../route'
import { attempt } from '../upstream'
import { Skeleton } from '../parts/skeleton'

export function People({ rest }: { rest: string }) {
  const at = rest === 'people' ? 'people' : 'keys'
  return (
    <>
      <nav class="tabs" aria-label="People and keys">
        <a href="#/people" aria-current={at === 'keys' ? 'page' : undefined}>Keys</a>
        <a href="#/people/people" aria-current={at === 'people' ? 'page' : undefined}>People</a>
      </nav>
      {at === 'keys' && <section aria-label="Keys"><Keys path="/api/v1/keys" none="There are no keys yet: only programs and browsers of this machine get in. A program elsewhere needs a key. Once the first one exists, every request needs one, also from this machine." /></section>}
      {at === 'people' && <section aria-label="People">{me.value?.has?.includes('people') ? <Persons /> : <SetUp />}</section>}
    </>
  )
}

/** How people get to sign in, for a server where nobody does. */
function SetUp() {
  return (
    <>
      <p>Here nobody signs in with an account: you use this server alone, or with keys. For a team, let people sign in at your identity provider, such as Google, Okta or Keycloak. Each then has servers, jobs and limits of their own.</p>
      <p>Put this into <code>luanette.toml</code>, and start the server again:</p>
      <Command text={'public_url = "https://luanette.example.com"\n\n[identity.corp]\nissuer = "https://accounts.example.com"\nclient_id = "luanette"\nclient_secret = "env:OIDC_SECRET"\nroles = ["user"]'} />
    </>
  )
}

function Persons() {
  const { data, error, reload } = useData((s) => get<{ people: Person[] }>('/api/v1/people', s), [], ['person.'], undefined, 30_000)
  const [find, setFind] = useFilter('find')
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <Skeleton />
  if (data.people.length === 0) return <Hint>Nobody has signed in yet. People appear here when they sign in at `/signin` for the first time.</Hint>
  const shown = data.people.filter((p) => `${p.name} ${p.email ?? ''} ${p.memberships?.map((m) => `${m.org} ${m.roles?.join(' ') ?? ''}`).join(' ') ?? ''}`.toLowerCase().includes(find.toLowerCase()))
  return (
    <>
      <div class="row filters">
        <label for="person-words" class="hidden">Find a person</label>
        <input id="person-words" type="search" placeholder="Name, organisation or role" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <span class="soft" role="status">{shown.length} of {count(data.people.length, 'person', 'people')}</span>
      </div>
      <Table label="People" rows={shown} columns={columns(reload)} id={(p) => p.id} />
    </>
  )
}

function columns(reload: () => void): Column<Person>[] {
  return [
    { name: 'Person', value: (p) => p.name, cell: (p) => <><b class="name">{p.name || p.id}</b>{p.email && <div class="soft small breaks">{p.email}</div>}</> },
    { name: 'State', value: (p) => (p.blocked ? 'blocked' : 'active'), cell: (p) => <State state={p.blocked ? 'blocked' : 'active'} /> },
    { name: 'Organisations and roles', value: (p) => p.memberships?.[0]?.org ?? '', cell: (p) => <Memberships of={p} /> },
    { name: 'Last sign-in', value: (p) => p.seen, cell: (p) => <time class="soft" dateTime={p.seen}>{ago(p.seen)}</time> },
    { name: '(Actions)', cell: (p) => <Actions person={p} reload={reload} />, class: 'row' },
  ]
}

function Actions({ person: p, reload }: { person: Person; reload: () => void }) {
  const name = p.name || p.id
  const send = (what: string) => void attempt(() => post(`/api/v1/people/${encodeURIComponent(p.id)}/${what}`, undefined), `${name} ${what}ed`).then(reload)
  const path = `/api/v1/people/${encodeURIComponent(p.id)}`
  const erase = () => void attempt(() => post(path, undefined, 'DELETE'), `what was stored about ${name} is erased`).then(reload)
  if (me.value?.id.split('/')[0] === `person:${p.id}`) return <a href="#/you">you</a>
  return (
    <>
      {p.blocked ? <button type="button" onClick={() => send('unblock')}>Unblock</button> : <Ask label="Block" question={`Block ${name}? Their sessions, clients, jobs and keys end within a second. They can be unblocked later.`} yes={`Block ${name}`} action={() => send('block')} />}
      <a class="button" href={`${path}/export`} download>Export</a>
      <Ask label="Erase" question={`Erase everything that is stored about ${name}? This cannot be undone. The audit log keeps that something happened, not its content.`} yes={`Erase ${name}`} action={erase} />
    </>
  )
}
