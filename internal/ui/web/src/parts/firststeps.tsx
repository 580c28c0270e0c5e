// The overview of a server that has no tools yet: three steps, checked as they are done.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { get, may } from '../api'
import { useData } from '../resource'
import { go } from '../route'
import { Copy } from './copy'

interface Client {
  title: string
  command?: string
  text?: string
}

const clients: Client[] = [
  { title: 'Claude Code', command: 'luanette install claude-code' },
  { title: 'Claude Desktop', command: 'luanette install claude-desktop' },
  { title: 'Cursor', command: 'luanette install cursor' },
  { title: 'VS Code', command: 'luanette install vscode' },
  { title: 'Codex', command: 'luanette install codex' },
  { title: 'Gemini', command: 'luanette install gemini' },
  { title: 'Other', text: JSON.stringify({ mcpServers: { luanette: { type: 'http', url: `${location.origin}/mcp` } } }, null, 2) },
]

const hidden = signal(localStorage.getItem('luanette.steps') === 'hidden')

function hide(): void {
  localStorage.setItem('luanette.steps', 'hidden')
  hidden.value = true
}

/** The steps, until all are done or somebody hides them. */
export function FirstSteps({ servers, calls }: { servers: number; calls: number }) {
  const health = useData((s) => get<{ sessions?: { connected: number } }>('/health', s), [], ['upstream.', 'tool.'], undefined, 3000)
  const connected = health.data?.sessions?.connected ?? 0
  if (servers > 0 && (hidden.value || calls > 0)) return null
  return (
    <section class="panel steps" aria-label="First steps">
      <div class="row spread"><h2>Three steps</h2>{servers > 0 && <button type="button" onClick={hide}>Hide</button>}</div>
      <Step number={1} done={servers > 0} title="Add a server">
        <p>Take over the servers that your clients have, or add one by its command:</p>
        <Command text="luanette import --all" />
        <Command text="luanette upstream add files -- npx -y @modelcontextprotocol/server-filesystem ~" />
        <p>{may('admin') && <button type="button" class="main" onClick={() => go('servers?add=1')}>Connect a URL</button>}</p>
      </Step>
      <Step number={2} done={connected > 0} title="Connect your agent">
        <Clients />
        <p class="soft" role="status">{connected > 0 ? `connected: ${connected}` : 'waiting for it to connect…'}</p>
      </Step>
      <Step number={3} done={calls > 0} title="Try a tool">
        <p>Ask your agent for something that a server can do, or <a href="#/tools">try a tool here</a>.</p>
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

function Clients() {
  const [title, setTitle] = useState(clients[0].title)
  const client = clients.find((c) => c.title === title)!
  return (
    <>
      <div class="segments" role="tablist" aria-label="Clients">
        {clients.map((c) => <button key={c.title} type="button" role="tab" aria-selected={c === client} onClick={() => setTitle(c.title)}>{c.title}</button>)}
      </div>
      <div role="tabpanel" aria-label={client.title}><Command text={client.command ?? client.text!} /></div>
    </>
  )
}

function Command({ text }: { text: string }) {
  return <div class="copied"><pre>{text}</pre><Copy text={text}>Copy</Copy></div>
}
