// The upstreams: their settings, their state, and actions on them.
import { useState } from 'preact/hooks'
import { get, may, post } from '../api'
import { ago, count } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { Hint } from './hint'
import { notify } from './notices'
import { State } from './state'
import { UpstreamForm } from './upstreamform'

export interface Upstream {
  namespace: string
  endpoint: string
  state: string
  tool_count: number
  error?: string
  attempt?: number
  origin: 'config' | 'startup' | 'added'
  configured_at?: string
  wanted: boolean
  editable: boolean
  by?: string
  changed?: string
  settings?: Settings
}

export interface Settings {
  url: string
  transport?: string
  protocol?: string
  headers?: string[] // names only
  read_only?: boolean
}

/** Does an action and shows a notice about its result. */
async function attempt(action: () => Promise<unknown>, done: string): Promise<void> {
  try {
    await action()
    notify('good', done)
  } catch (e) {
    notify('bad', (e as Error).message)
  }
}

export function Upstreams() {
  const { data, error, reload } = useData((s) => get<{ upstreams: Upstream[] }>('/api/v1/upstreams', s), [], ['upstream.', 'config.'])
  const [open, setOpen] = useState<Upstream | 'new'>()
  const admin = may('admin')
  const act = (u: Upstream, method: string, path: string, done: string) =>
    void attempt(() => post(`/api/v1/upstreams/${encodeURIComponent(u.namespace)}${path}`, undefined, method), done).then(reload)
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {data?.upstreams.length === 0 && <Hint>None yet.</Hint>}
      {data && data.upstreams.length > 0 && (
        <div class="scroll">
          <table class="stack" aria-label="Upstreams">
            <thead><tr><th>Name</th><th>Address</th><th>State</th><th>From</th><th><span class="hidden">Actions</span></th></tr></thead>
            <tbody>
              {data.upstreams.map((u) => (
                <tr key={u.namespace}>
                  <td><strong>{u.namespace}</strong></td>
                  <td class="mono breaks">{u.endpoint}</td>
                  <td>
                    <State state={u.state} /> {u.state === 'connected' && <span class="soft">{count(u.tool_count, 'tool')}</span>}
                    {!u.wanted && <div class="soft small">removed, but still in the configuration</div>}
                    {u.wanted && u.state !== 'connected' && u.error && <div class="bad small brief" title={u.error}>{u.error}</div>}
                  </td>
                  <td><From upstream={u} /></td>
                  <td class="row">
                    {!u.wanted ? admin && <button type="button" class="main" onClick={() => act(u, 'POST', '/restore', `${u.namespace} restored`)}>Restore</button> : (
                      <>
                        {u.state === 'connected'
                          ? <button type="button" onClick={() => void attempt(() => call('tools_refresh', { namespace: u.namespace }), `${u.namespace}: tools refreshed`)}>Refresh</button>
                          : admin && <button type="button" onClick={() => act(u, 'POST', '/retry', `${u.namespace}: reconnecting`)}>Retry</button>}
                        {admin && u.editable && <button type="button" onClick={() => setOpen(u)}>Edit</button>}
                        {admin && <button type="button" onClick={() => act(u, 'DELETE', '', `${u.namespace} removed`)}>Remove</button>}
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {admin && <p><button type="button" class="main" onClick={() => setOpen('new')}>Add an upstream</button></p>}
      {open !== undefined && <UpstreamForm upstream={open === 'new' ? undefined : open} close={() => { setOpen(undefined); reload() }} />}
      <Hint>Upstreams that run as a local program can only be added in `luanette.toml` or with `luanette upstream add`.</Hint>
    </>
  )
}

/** Where the upstream was configured, or who added it. */
function From({ upstream: u }: { upstream: Upstream }) {
  if (u.origin === 'config') return <>{u.configured_at ? <code class="place" title={`${u.configured_at}: edit it there; the server reloads the file`}>{u.configured_at.replace(/^.*[/\\]/, '')}</code> : 'the configuration'}{!u.wanted && u.by && <div class="soft small">removed by {u.by}{u.changed && `, ${ago(u.changed)}`}</div>}</>
  if (u.origin === 'startup') return <code>startup.lua</code>
  return <>added{u.by && ` by ${u.by}`}{u.changed && <span class="soft"> {ago(u.changed)}</span>}</>
}
