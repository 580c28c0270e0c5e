import { useState } from 'preact/hooks'
import { get, me, post, loadMe } from '../api'
import { ago } from '../format'
import { useData } from '../resource'
import { Copy } from './copy'
import { notify } from './notices'

interface Key {
  name: string
  scopes: string[]
  state: string
  fixed?: boolean
  expires?: string
  used?: string
  token?: string
}

const scopes = ['read', 'mcp', 'chat', 'admin']

/** API keys, for administrators. */
export function Keys() {
  const { data, error, reload } = useData((s) => get<{ keys: Key[] }>('/api/v1/keys', s), [], ['key.'])
  const [name, setName] = useState('')
  const [selected, setSelected] = useState<string[]>(['read', 'mcp'])
  const [expires, setExpires] = useState('90d')
  const [created, setCreated] = useState<Key>()
  const attempt = async (action: () => Promise<void>) => {
    try {
      await action()
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload()
  }
  const create = () => attempt(async () => {
    setCreated(await post<Key>('/api/v1/keys', { name, scopes: selected, expires }))
    setName('')
    if (me.value?.open) void loadMe() // with the first key the server requires a login
  })
  const revoke = (key: Key) => attempt(async () => {
    await post(`/api/v1/keys/${encodeURIComponent(key.name)}`, undefined, 'DELETE')
    notify('plain', `${key.name} revoked`)
  })
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {data?.keys.length === 0 && <p class="soft">No keys: everyone who can reach this server has full access. Once the first key exists, every request requires one, including this page.</p>}
      {created && (
        <p role="status">Key <code>{created.name}</code>, shown only once: <code class="secret">{created.token}</code> <Copy text={created.token ?? ''}>Copy</Copy></p>
      )}
      <div class="scroll">
        <table aria-label="Keys">
          <tbody>
            {data?.keys.map((k) => (
              <tr key={k.name}>
                <td>{k.name}</td><td>{k.scopes.join(', ')}</td>
                <td class={k.state === 'active' ? 'good' : 'soft'}>{k.state}</td>
                <td class="soft">{k.used ? `used ${ago(k.used)}` : 'never used'}{k.expires && `, until ${new Date(k.expires).toLocaleDateString()}`}</td>
                <td>{k.state === 'active' && (k.fixed ? <span class="soft">set in the configuration</span> : <button type="button" onClick={() => void revoke(k)}>Revoke {k.name}</button>)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <form class="row" onSubmit={(e) => { e.preventDefault(); void create() }}>
        <label for="key-name">Name of a new key</label><input id="key-name" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <fieldset class="row"><legend class="hidden">Scopes</legend>
          {scopes.map((s) => (
            <label key={s}><input type="checkbox" checked={selected.includes(s)} onChange={() => setSelected(selected.includes(s) ? selected.filter((x) => x !== s) : [...selected, s])} /> {s}</label>
          ))}
        </fieldset>
        <label class="pair">Expires <input size={8} value={expires} placeholder="never" onInput={(e) => setExpires(e.currentTarget.value)} /></label>
        <button class="main" type="submit">Create key</button>
      </form>
    </>
  )
}
