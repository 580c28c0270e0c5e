// One organisation: what it has used of its quotas, its own servers, and its people.
import { useState } from 'preact/hooks'
import { get, getIfAny, me, post } from '../api'
import { ago } from '../format'
import { Ask } from '../parts/ask'
import { Dialog } from '../parts/dialog'
import { Hint } from '../parts/hint'
import { Memberships, type Person } from '../parts/memberships'
import { Until } from '../parts/now'
import { Quota } from '../parts/quota'
import { State } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { UpstreamFields, UpstreamForm } from '../parts/upstreamform'
import { useData } from '../resource'
import { useFilter } from '../route'
import { attempt, type Upstream } from '../upstream'
import { Skeleton } from '../parts/skeleton'

interface Used {
  used: number
  limit?: number
}

interface OrgUsage {
  calls: Used
  jobs: Used
  cpu_seconds?: Used
  storage_mb?: Used // what is stored now; it does not renew
  renews: string
}

/** The user's organisation; administrators of the server choose one. */
export function Organisation() {
  const [chosen, setChosen] = useFilter('org')
  const all = useData(async (s) => (me.value?.org ? undefined : orgsOf((await getIfAny<{ people: Person[] }>('/api/v1/people', s))?.people ?? [])), [])
  const org = me.value?.org || chosen || all.data?.[0]
  if (!org) return all.data?.length === 0 ? <section class="panel"><Hint>No organisation has people yet. `[identity.NAME.orgs]` in luanette.toml puts the members of groups into organisations; `luanette people add-to ORG ID` adds one person.</Hint></section> : <Skeleton />
  return (
    <>
      {all.data && <div class="row filters"><label for="organisation">Organisation</label><select id="organisation" value={org} onChange={(e) => setChosen(e.currentTarget.value)}>{all.data.map((o) => <option key={o}>{o}</option>)}</select></div>}
      <Quotas key={`quotas ${org}`} org={org} />
      <Servers key={`servers ${org}`} org={org} />
      <Members key={`members ${org}`} org={org} />
    </>
  )
}

const orgsOf = (people: Person[]) => [...new Set(people.flatMap((p) => p.memberships ?? []).map((m) => m.org))].filter(Boolean).sort()

/** What is counted, in words. */
const counted = { calls: 'Calls of tools', jobs: 'Jobs', cpu_seconds: 'CPU seconds of scripts', storage_mb: 'Stored, in MB' } as const

function Quotas({ org }: { org: string }) {
  const { data: u, error } = useData((s) => get<OrgUsage>(`/api/v1/orgs/${encodeURIComponent(org)}/usage`, s), [org], ['tool.call_ended', 'job.'], undefined, 10_000)
  const limited = u && (Object.keys(counted) as (keyof typeof counted)[]).filter((k) => u[k]?.limit)
  return (
    <section class="panel" aria-label="Quotas">
      <h2>Quotas of {org}</h2>
      {error && <p class="bad">{error.message}</p>}
      {limited?.length === 0 && <Hint>{`None. \`[orgs.${org}.quota]\` in luanette.toml limits calls, jobs, CPU seconds and storage of all its people together.`}</Hint>}
      {u && limited?.map((k) => <Quota key={k} name={counted[k]} used={u[k]!.used} limit={u[k]!.limit!} />)}
      {u && limited?.some((k) => k !== 'storage_mb') && <p class="soft small">What is counted a day renews <Until time={Date.parse(u.renews)} />, at midnight UTC.</p>}
    </section>
  )
}

/** The servers that the organisation added for itself. Those of the configuration are on the page of servers. */
function Servers({ org }: { org: string }) {
  const path = `/api/v1/orgs/${encodeURIComponent(org)}/upstreams`
  const { data, error, reload } = useData((s) => getIfAny<{ upstreams: Upstream[] }>(path, s), [path], ['upstream.'])
  const [form, setForm] = useState<Upstream | 'new'>()
  const nameOf = (u: Upstream) => u.namespace.split('@')[0]
  const act = (u: Upstream, action: string, done: string, method = 'POST') => void attempt(() => post(`${path}/${encodeURIComponent(nameOf(u))}${action}`, undefined, method), `${nameOf(u)} ${done}`).then(reload)
  const serverColumns: Column<Upstream>[] = [
    { name: 'State', value: (u) => u.state, cell: (u) => <State state={u.state} /> },
    { name: 'Name', value: nameOf, cell: (u) => <a class="name" href={`#/servers/${encodeURIComponent(u.namespace)}`}>{nameOf(u)}</a> },
    { name: 'Address', value: (u) => u.endpoint, cell: (u) => <><span class="mono breaks">{u.endpoint}</span>{u.error && <div class="bad small brief">{u.error}</div>}</> },
    { name: 'Tools', value: (u) => u.tool_count, cell: (u) => u.tool_count, number: true },
    { name: '(Actions)', cell: (u) => <>{u.editable && <button type="button" onClick={() => setForm(u)}>Edit</button>}{u.wanted ? <><button type="button" onClick={() => act(u, '/restart', 'restarted')}>Restart</button><button type="button" onClick={() => act(u, '/disable', 'disabled')}>Disable</button></> : <button type="button" onClick={() => act(u, '/restore', 'enabled')}>Enable</button>}<Ask label="Remove" question={`Remove ${nameOf(u)}? Nobody in ${org} can use its tools any more.`} yes={`Remove ${nameOf(u)}`} action={() => act(u, '', 'removed', 'DELETE')} /></>, class: 'row' },
  ]
  const close = () => { setForm(undefined); reload() }
  if (!data && !error) return null
  return (
    <>
      <section class="panel" aria-label="Servers">
        <h2>Servers of {org}</h2>
        {error && <p class="bad">{error.message}</p>}
        {data?.upstreams.length === 0 && <Hint>None was added. Only people of the organisation see its servers and use their tools.</Hint>}
        {data && data.upstreams.length > 0 && <Table label="Servers" rows={data.upstreams} columns={serverColumns} id={(u) => u.namespace} />}
        {data && <div class="row actions"><button type="button" class="main" onClick={() => setForm('new')}>Add a server</button></div>}
      </section>
      {form === 'new' && <Dialog title={`Add a server for ${org}`} close={close}><UpstreamFields path={path} done={close} cancel={close} /></Dialog>}
      {form && form !== 'new' && <UpstreamForm upstream={{ ...form, namespace: nameOf(form) }} path={path} close={close} />}
    </>
  )
}

const columns: Column<Person>[] = [
  { name: 'Person', value: (p) => p.name, cell: (p) => <><b class="name">{p.name || p.id}</b>{p.email && <div class="soft small breaks">{p.email}</div>}</> },
  { name: 'State', value: (p) => (p.blocked ? 'blocked' : 'active'), cell: (p) => <State state={p.blocked ? 'blocked' : 'active'} /> },
  { name: 'Roles', value: (p) => p.memberships?.[0]?.roles?.join() ?? '', cell: (p) => <Memberships of={p} plain /> },
  { name: 'From', value: (p) => p.memberships?.[0]?.source ?? '', cell: (p) => <span class="soft">{p.memberships?.[0]?.source === 'admin' ? 'added by an administrator' : p.memberships?.[0]?.source}</span> },
  { name: 'Last sign-in', value: (p) => p.seen, cell: (p) => <time class="soft" dateTime={p.seen}>{ago(p.seen)}</time> },
]

function Members({ org }: { org: string }) {
  const { data, error } = useData((s) => get<{ people: Person[] }>(`/api/v1/orgs/${encodeURIComponent(org)}/people`, s), [org], ['person.'])
  return (
    <section class="panel" aria-label="Members">
      <h2>People of {org}</h2>
      {error && <p class="bad">{error.message}</p>}
      {data?.people.length === 0 && <Hint>Nobody yet.</Hint>}
      {data && data.people.length > 0 && <Table label="Members" rows={data.people} columns={columns} id={(p) => p.id} />}
    </section>
  )
}
