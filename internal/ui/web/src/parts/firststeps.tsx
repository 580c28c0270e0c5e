// The overview of a server that is new: three steps, checked as they are done.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { get, may } from '../api'
import { useData } from '../resource'
import { loadSetup, type ClientHelp, type Setup } from '../setup'
import { lazy } from '../shell/lazy'
import { Command } from './command'

const AddServer = lazy(() => import('./connect').then((m) => m.AddServer))

const hidden = signal(localStorage.getItem('luanette.steps') === 'hidden')

function hide(): void {
  localStorage.setItem('luanette.steps', 'hidden')
  hidden.value = true
}

interface Connected {
  name: string
  version?: string
}

/** Clients that are no agents: this page, and our own commands. */
const own = new Set(['luanette-hud', 'luanette'])

/** What the steps show; undefined until it is loaded. */
export interface Progress {
  clients: Connected[] // agents that are connected
  setup?: Setup
}

/** Loads what the steps show; `servers` is undefined until it is known. */
export function useProgress(servers?: number): Progress | undefined {
  const shown = !hidden.value || servers === 0
  const health = useData(async (s): Promise<{ clients?: Connected[] }> => (shown ? get('/health', s) : {}), [shown], ['upstream.', 'tool.', 'session.'], undefined, shown ? 3000 : 0)
  const setup = useData(async (s) => (shown ? loadSetup(s) : undefined), [shown])
  if (!(health.data ?? health.error) || (shown && !(setup.data ?? setup.error))) return undefined
  return { clients: (health.data?.clients ?? []).filter((c) => !own.has(c.name)), setup: setup.data }
}

/** The steps, until all are done or somebody hides them. */
export function FirstSteps({ servers, calls, progress, added }: { servers: number; calls: number; progress: Progress; added: () => void }) {
  const { clients, setup } = progress
  const done = servers > 0 && calls > 0 && clients.length > 0
  useEffect(() => {
    if (done) hide()
  }, [done])
  if (servers > 0 && (hidden.value || done)) return null
  return (
    <section class="panel steps" aria-label="First steps">
      <div class="row spread"><div><h2>All tools of your agent, in one place</h2><p class="soft small">Luanette stands between your agent and its tool servers: the agent sees a few tools instead of hundreds, and you see what it does.</p></div>{servers > 0 && <button type="button" onClick={hide}>Hide</button>}</div>
      <Step number={1} done={servers > 0} title={servers > 0 ? 'A server is added' : 'Add a server'}>
        {servers === 0 && (may('admin') ? <AddServer done={added} /> : <p>An administrator adds servers.</p>)}
      </Step>
      <Step number={2} done={clients.length > 0} title="Connect your agent">
        {clients.length === 0 && <Clients all={setup?.clients ?? []} />}
        <p class={clients.length > 0 ? 'good' : 'soft'} role="status">{clients.length > 0 ? `connected: ${clients.map((c) => `${c.name} ${c.version ?? ''}`.trim()).join(', ')}` : 'waiting for it to connect…'}</p>
      </Step>
      <Step number={3} done={calls > 0} title={calls > 0 ? 'The first call arrived' : 'See its first call'}>
        {calls === 0 && <><p>Ask your agent, and watch the call arrive here:</p><Command text="Which tools do you have through Luanette? Try one that only reads." /><p class="soft">Or <a href="#/tools">try a tool on this page</a>.</p></>}
      </Step>
    </section>
  )
}

function Step({ number, done, title, children }: { number: number; done: boolean; title: string; children: ComponentChildren }) {
  return (
    <div class="step">
      <span class={done ? 'number done' : 'number'} aria-label={done ? 'done' : `step ${number}`} role="img">{done ? '✓' : number}</span>
      <div><h3>{title}</h3>{children}</div>
    </div>
  )
}

/** The clients that have a tab; the others are in a list. */
const common = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'codex', 'gemini']

/** How each client connects. */
function Clients({ all }: { all: ClientHelp[] }) {
  const [name, setName] = useState('claude-code')
  const client = all.find((c) => c.name === name)
  const others = all.filter((c) => !common.includes(c.name))
  return (
    <>
      <div class="row">
        <div class="segments" role="tablist" aria-label="Clients">
          {all.filter((c) => common.includes(c.name)).map((c) => <button key={c.name} type="button" role="tab" aria-selected={c === client} onClick={() => setName(c.name)}>{c.title}</button>)}
        </div>
        <select class="others" aria-label="Other clients" value={others.some((c) => c.name === name) ? name : ''} onChange={(e) => e.currentTarget.value && setName(e.currentTarget.value)}>
          <option value="">other…</option>{others.map((c) => <option key={c.name} value={c.name}>{c.title}</option>)}
        </select>
      </div>
      {client && <div role="tabpanel" aria-label={client.title}><Help client={client} /></div>}
    </>
  )
}

function Help({ client: c }: { client: ClientHelp }) {
  return (
    <>
      <Command text={c.install} />
      {c.command && <><p class="soft">or with its own command</p><Command text={c.command} /></>}
      {c.snippet && <details><summary>or by hand, in <code>{c.file}</code></summary><Command text={c.snippet} /></details>}
    </>
  )
}
