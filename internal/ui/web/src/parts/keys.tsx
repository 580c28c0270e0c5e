// API keys: all of the server, or those of one person.
import { useState } from 'preact/hooks'
import { get, loadMe, me, post } from '../api'
import { ago } from '../format'
import { useData } from '../resource'
import { attempt } from '../upstream'
import { Copy } from './copy'
import { Hint } from './hint'
import { notify } from './notices'
import { State } from './state'
import { Table, type Column } from './table'

interface Key {
  name: string
  scopes: string[]
  state: string
  fixed?: boolean
  expires?: string
  used?: string
  token?: string
}

/** The keys at an address of the API, which may have some scopes. */
export function Keys({ path, scopes, none }: { path: string; scopes: string[]; none: string }) {
  const { data, error, reload } = useData((s) => get<{ keys: Key[] }>(path, s), [path], ['key.'])
  const [created, setCreated] = useState<Key>()
  const revoke = (k: Key) => void attempt(() => post(`${path}/${encodeURIComponent(k.name)}`, undefined, 'DELETE'), `${k.name} revoked`).then(reload)
  const show = (key: Key) => {
    setCreated(key)
    reload()
    if (me.value?.open) void loadMe() // with the first key the server requires a login
  }
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {created && <p class="notice" role="status">Key <code>{created.name}</code>, shown only once: <code class="secret breaks">{created.token}</code> <Copy text={created.token ?? ''}>Copy</Copy></p>}
      {data?.keys.length === 0 && <Hint>{none}</Hint>}
      {data && data.keys.length > 0 && <Table label="Keys" rows={data.keys} columns={columns(revoke)} id={(k) => k.name} />}
      <NewKey path={path} scopes={scopes} created={show} />
    </>
  )
}

function columns(revoke: (k: Key) => void): Column<Key>[] {
  return [
    { name: 'Name', value: (k) => k.name, cell: (k) => <b class="name breaks">{k.name}</b> },
    { name: 'State', value: (k) => k.state, cell: (k) => <State state={k.state} /> },
    { name: 'Scopes', value: (k) => k.scopes.join(), cell: (k) => k.scopes.join(', ') },
    { name: 'Last use', value: (k) => k.used ?? '', cell: (k) => <span class="soft">{k.used ? `used ${ago(k.used)}` : 'never used'}</span> },
    { name: 'Expires', value: (k) => k.expires ?? '', cell: (k) => <span class="soft">{k.expires ? `until ${new Date(k.expires).toLocaleDateString()}` : 'does not expire'}</span> },
    { name: '(Actions)', cell: (k) => k.state === 'active' && (k.fixed ? <span class="soft">set in the configuration</span> : <button type="button" onClick={() => revoke(k)}>Revoke {k.name}</button>), class: 'row' },
  ]
}

function NewKey({ path, scopes, created }: { path: string; scopes: string[]; created: (key: Key) => void }) {
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<string[]>(scopes.filter((s) => s === 'read' || s === 'mcp'))
  const [expires, setExpires] = useState('90d')
  const create = async () => {
    try {
      created(await post<Key>(path, { name, scopes: chosen, expires }))
      setName('')
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  return (
    <form class="newkey" onSubmit={(e) => { e.preventDefault(); void create() }}>
      <label>Name of a new key<input required value={name} placeholder="laptop" onInput={(e) => setName(e.currentTarget.value)} /></label>
      <fieldset><legend>Scopes</legend>
        <div class="row">{scopes.map((s) => <label key={s}><input type="checkbox" checked={chosen.includes(s)} onChange={() => setChosen(chosen.includes(s) ? chosen.filter((x) => x !== s) : [...chosen, s])} /> {s}</label>)}</div>
      </fieldset>
      <label>Expires<input size={8} value={expires} placeholder="never" onInput={(e) => setExpires(e.currentTarget.value)} /></label>
      <button class="main" type="submit">Create key</button>
    </form>
  )
}
