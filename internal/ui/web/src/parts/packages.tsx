// The npm packages that servers run: which newer versions there are, what one would change,
// and the way there and back.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, post } from '../api'
import { ago, count } from '../format'
import { visible } from '../schema'
import { attempt } from '../upstream'
import { Dialog } from './dialog'
import { Hint } from './hint'
import { notify } from './notices'
import { Table, type Column } from './table'

interface Installed {
  upstream: string
  package: string
  version: string
  installed_at: string
  wanted: string
  latest: string
  previous?: string
  error?: string
}

interface Change {
  kind: 'new' | 'changed' | 'gone'
  name: string
  difference?: string
}

interface Upgrade {
  package: string
  from: string
  to: string
  added?: string[]
  removed?: string[]
  changed?: string[]
  scripts?: string[]
  skipped?: string[]
  engines?: string
  tools?: Change[]
  same: number
  broken?: string
  in_effect: boolean
}

interface List {
  packages: Installed[]
  programs: boolean // whether this page may install other versions
}

const pathOf = (p: { upstream: string }, action: string) => `/api/v1/setup/packages/${encodeURIComponent(p.upstream)}/${action}`

/** The packages of all servers, or of one. The registry is asked when somebody wants to know. */
export function Packages({ only }: { only?: string }) {
  const [list, setList] = useState<List>()
  const [busy, setBusy] = useState(false)
  const [trying, setTrying] = useState<Installed>()
  const look = async () => {
    setBusy(true)
    await attempt(async () => setList(await get<List>('/api/v1/setup/packages')))
    setBusy(false)
  }
  const rows = list?.packages.filter((p) => !only || p.upstream === only)
  const back = (p: Installed) => void attempt(() => post(pathOf(p, 'rollback'), undefined), `${p.upstream} uses ${p.package} ${p.previous} again`).then(look)
  const columns: Column<Installed>[] = [
    ...(only ? [] : [{ name: 'Server', value: (p: Installed) => p.upstream, cell: (p: Installed) => <a class="name" href={`#/servers/${encodeURIComponent(p.upstream)}`}>{p.upstream}</a> }]),
    { name: 'Package', value: (p) => p.package, cell: (p) => <span class="mono breaks">{p.package}</span> },
    { name: 'Version', cell: (p) => <>{p.version} <span class="soft">{ago(p.installed_at)}</span></> },
    { name: 'Newest', cell: (p) => <Newest installed={p} /> },
    { name: '(Actions)', class: 'row', cell: (p) => (
      <>
        {list?.programs && p.wanted && p.wanted !== p.version && <button type="button" onClick={() => setTrying(p)}>What would change…</button>}
        {list?.programs && p.previous && <button type="button" onClick={() => back(p)}>Back to {p.previous}</button>}
      </>
    ) },
  ]
  return (
    <section class="panel" aria-label="Packages">
      <div class="row spread"><h2>Packages</h2><button type="button" disabled={busy} onClick={() => void look()}>{list ? 'Look again' : 'Look for newer versions'}</button></div>
      {busy ? <p class="soft" role="status">asking the registry…</p> : !list && <Hint>Programs that npx would run are installed once, and stay at their version until somebody upgrades them.</Hint>}
      {rows && rows.length > 0 && <Table label="Packages" rows={rows} columns={columns} id={(p) => p.upstream} />}
      {rows?.length === 0 && <Hint>No server of the configuration has an installed package.</Hint>}
      {list && !list.programs && <Hint>Other versions are installed only from this page on the machine of the server, or with `luanette upstream upgrade`.</Hint>}
      {trying && <Trial of={trying} close={() => setTrying(undefined)} done={look} />}
    </section>
  )
}

function Newest({ installed: p }: { installed: Installed }) {
  if (p.error) return <span class="bad small">{p.error}</span>
  return <>{p.wanted === p.version ? <span class="soft">this one</span> : <b>{p.wanted}</b>}{p.latest !== p.wanted && <span class="soft"> {p.latest} is outside of what the configuration allows</span>}</>
}

/** Tries the newest version beside the one in effect, says what it changes, and makes it the one in effect. */
function Trial({ of: p, close, done }: { of: Installed; close: () => void; done: () => void }) {
  const [found, setFound] = useState<Upgrade>()
  const [failure, setFailure] = useState('')
  const [busy, setBusy] = useState(true)
  const open = useRef(true)
  const send = async (dry_run: boolean, then: (u: Upgrade) => void) => {
    setBusy(true)
    try {
      const answer = await post<Upgrade>(pathOf(p, 'upgrade'), { to: p.wanted, dry_run })
      if (open.current) then(answer)
    } catch (e) {
      setFailure((e as Error).message)
    }
    setBusy(false)
  }
  useEffect(() => {
    void send(true, setFound)
    return () => { open.current = false }
  }, [])
  const use = () => void send(false, () => {
    const back = () => void attempt(() => post(pathOf(p, 'rollback'), undefined), `${p.upstream} uses ${p.package} ${p.version} again`).then(done)
    notify('good', `${p.upstream} uses ${p.package} ${p.wanted}`, back)
    close()
    done()
  })
  return (
    <Dialog title={`${p.package} ${p.version} → ${p.wanted}`} wide close={close}>
      {found ? <Changes of={found} /> : !failure && <p class="soft" role="status">{p.wanted} is installed beside {p.version}, and started once to see its tools. Nothing changes for {p.upstream}.</p>}
      {found && busy && <p class="soft" role="status">making {p.wanted} the one in effect…</p>}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <div class="row actions">
        {found && !found.in_effect && <button type="button" class="main" disabled={busy} onClick={use}>Upgrade to {p.wanted}</button>}
        <button type="button" onClick={close}>{found ? 'Not now' : 'Close'}</button>
      </div>
    </Dialog>
  )
}

function Changes({ of: u }: { of: Upgrade }) {
  const lists: [string, string[] | undefined][] = [
    ['Packages added', u.added], ['Packages removed', u.removed], ['Packages changed', u.changed],
    ['New install scripts, run in a sandbox', u.scripts], ['New install scripts, not run', u.skipped], ['It wants node', u.engines ? [u.engines] : undefined],
  ]
  return (
    <>
      <dl class="facts">{lists.map(([name, list]) => list && list.length > 0 && [<dt key={name}>{name}</dt>, <dd key={`${name}:`}><Names of={list} /></dd>])}</dl>
      {u.broken && <p class="warn small">The version in effect does not start, so its tools are not compared: {u.broken}</p>}
      {!u.broken && <p>{u.tools?.length ? `${count(u.tools.length, 'tool')} differ${u.tools.length === 1 ? 's' : ''}, ${u.same} as before.` : `The same ${count(u.same, 'tool')}.`}</p>}
      <ul class="list" aria-label="Tools that differ">
        {u.tools?.map((t) => (
          <li key={t.name}><span class={t.kind === 'gone' ? 'bad' : t.kind === 'new' ? 'good' : 'warn'}>{t.kind}</span> <b class="mono">{visible(t.name)}</b>
            {t.difference && <details open={(u.tools?.length ?? 0) <= few}><summary>What differs</summary><pre class="diff">{visible(t.difference).split('\n').map((line, i) => <div key={i} class={/^ *\+/.test(line) ? 'good' : /^ *-/.test(line) ? 'bad' : 'soft'}>{line}</div>)}</pre></details>}
          </li>
        ))}
      </ul>
    </>
  )
}

/** How many names or differences are shown at once; more are folded. */
const few = 6

function Names({ of: list }: { of: string[] }) {
  const text = <span class="mono small breaks">{list.map(visible).join(', ')}</span>
  return list.length > few ? <details><summary>{list.length}</summary>{text}</details> : text
}
