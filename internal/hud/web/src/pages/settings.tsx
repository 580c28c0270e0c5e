import { useState } from 'preact/hooks'
import { ask, get, may, refusal } from '../api'
import { count, duration } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { notify } from '../parts/notices'
import { Keys } from './keys'

interface Health {
  status: string
  version: string
  uptime_secs: number
  sessions?: { total: number; connected: number }
  upstreams?: Record<string, { state: string }>
}

export function Settings() {
  const state = useData((s) => get<Health>('/health', s), [], ['upstream.'])
  const config = useData(async (signal) => {
    const answer = await ask('/api/v1/config', { signal })
    if (!answer.ok) throw await refusal(answer)
    return answer.text()
  }, [])
  return (
    <>
      <h2>Health</h2>
      {state.data && <p>
        <span class="good">{state.data.status}</span>, version {state.data.version}, up for {duration(state.data.uptime_secs * 1000)}
        {state.data.sessions && `, ${count(state.data.sessions.connected, 'client')} connected`}
        {state.data.upstreams && `, ${Object.values(state.data.upstreams).filter((u) => u.state === 'connected').length} of ${count(Object.keys(state.data.upstreams).length, 'upstream')} connected`}
      </p>}
      {state.error && <p class="bad">{state.error.message}</p>}
      <h2>Upstreams</h2>
      <Upstreams />
      {may('admin') && <><h2>Keys</h2><Keys /></>}
      <h2>Effective configuration</h2>
      <p class="soft">As `luanette config show` prints it, without secrets. To change it, edit luanette.toml: the server notices.</p>
      {config.error && <p class="bad">{config.error.message}</p>}
      {config.data && <pre>{config.data}</pre>}
    </>
  )
}

interface Upstream {
  namespace: string
  endpoint: string
  state: string
}

function Upstreams() {
  const { data, error } = useData((s) => call<{ upstreams: Upstream[] }>('mcp_list_upstreams', {}, s), [], ['upstream.'])
  const [name, setName] = useState('')
  const [url, setURL] = useState('')
  const attempt = async (tool: string, args: unknown, done: string) => {
    try {
      await call(tool, args)
      notify('good', done)
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      <div class="scroll">
        <table>
          <tbody>
            {data?.upstreams.map((u) => (
              <tr key={u.namespace}>
                <td>{u.namespace}</td><td class="mono">{u.endpoint}</td><td>{u.state}</td>
                <td class="row">
                  <button type="button" onClick={() => attempt('tools_refresh', { namespace: u.namespace }, `${u.namespace} was asked again`)}>Refresh</button>
                  <button type="button" onClick={() => { setName(u.namespace); setURL(u.endpoint) }}>Edit</button>
                  <button type="button" onClick={() => attempt('mcp_disconnect', { namespace: u.namespace }, `${u.namespace} was removed`)}>Remove</button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <form class="row" onSubmit={(e) => { e.preventDefault(); void attempt('mcp_connect', { namespace: name, url }, `${name} is being connected`) }}>
        <label for="space">Name</label><input id="space" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <label for="url">URL</label><input id="url" required type="url" value={url} onInput={(e) => setURL(e.currentTarget.value)} />
        <button class="main" type="submit">Connect</button>
      </form>
      <p class="soft">Programs that run on this machine are added in luanette.toml or with `luanette upstream add`, never from here.</p>
    </>
  )
}
