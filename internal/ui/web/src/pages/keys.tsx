import { useState } from 'preact/hooks'
import { get, me, post, whoAmI } from '../api'
import { ago } from '../format'
import { useData } from '../resource'
import { Copy } from '../parts/copy'
import { notify } from '../parts/notices'

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

/** Who may come in, for administrators. */
export function Keys() {
  const { data, error, reload } = useData((s) => get<{ keys: Key[] }>('/api/v1/keys', s), [], ['key.'])
  const [name, setName] = useState('')
  const [wanted, setWanted] = useState<string[]>(['read', 'mcp'])
  const [expires, setExpires] = useState('90d')
  const [made, setMade] = useState<Key>()
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work()
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload()
  }
  const create = () => attempt(async () => {
    setMade(await post<Key>('/api/v1/keys', { name, scopes: wanted, expires }))
    setName('')
    if (me.value?.open) void whoAmI() // the first key closes the door
  })
  const revoke = (key: Key) => attempt(async () => {
    await post(`/api/v1/keys/${encodeURIComponent(key.name)}`, undefined, 'DELETE')
    notify('plain', `${key.name} opens nothing any more`)
  })
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {data?.keys.length === 0 && <p class="soft">None: everybody who reaches this server may do everything. The first key closes it, and then this page wants one too.</p>}
      {made && (
        <p role="status">The key <code>{made.name}</code>, shown only now: <code class="secret">{made.token}</code> <Copy text={made.token ?? ''}>Copy it</Copy></p>
      )}
      <div class="scroll">
        <table aria-label="Keys">
          <tbody>
            {data?.keys.map((k) => (
              <tr key={k.name}>
                <td>{k.name}</td><td>{k.scopes.join(', ')}</td>
                <td class={k.state === 'active' ? 'good' : 'soft'}>{k.state}</td>
                <td class="soft">{k.used ? `used ${ago(k.used)}` : 'never used'}{k.expires && `, until ${new Date(k.expires).toLocaleDateString()}`}</td>
                <td>{k.state === 'active' && (k.fixed ? <span class="soft">of the configuration</span> : <button type="button" onClick={() => void revoke(k)}>Revoke {k.name}</button>)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <form class="row" onSubmit={(e) => { e.preventDefault(); void create() }}>
        <label for="key-name">Name of a new key</label><input id="key-name" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <fieldset class="row"><legend class="hidden">Scopes</legend>
          {scopes.map((s) => (
            <label key={s}><input type="checkbox" checked={wanted.includes(s)} onChange={() => setWanted(wanted.includes(s) ? wanted.filter((x) => x !== s) : [...wanted, s])} /> {s}</label>
          ))}
        </fieldset>
        <label class="pair">Expires <input size={8} value={expires} placeholder="never" onInput={(e) => setExpires(e.currentTarget.value)} /></label>
        <button class="main" type="submit">Make a key</button>
      </form>
    </>
  )
}
