// Adding a server: by URL, by its command, an API, from the registry, or from other clients.
import { useState } from 'preact/hooks'
import { useData } from '../resource'
import { addCommand, importServers, loadCandidates, loadSetup, kindOf, nameOf, type Candidate, type Kind } from '../setup'
import { APIForm } from './apiform'
import { Command } from './command'
import { Dialog } from './dialog'
import { useAttempt } from './fields'
import { Hint } from './hint'
import { RegistrySearch } from './registry'
import { UpstreamFields } from './upstreamform'
import { Skeleton } from './skeleton'

const ways = { url: 'URL', command: 'Command or JSON', api: 'API', registry: 'Registry', clients: 'From your clients' }

export type Way = keyof typeof ways

export function Connect({ way, close }: { way?: Way; close: () => void }) {
  return <Dialog title="Connect a server" wide close={close}><AddServer way={way ?? 'url'} done={close} cancel={close} /></Dialog>
}

/** The ways to add a server. `done` is called when one was added. A text that is pasted chooses the way that it is meant for. */
export function AddServer({ way, given = '', done, cancel }: { way?: Way; given?: string; done: () => void; cancel?: () => void }) {
  const [picked, setChosen] = useState<Way | undefined>(way && way in ways ? way : undefined)
  const [text, setText] = useState(given)
  const setup = useData(loadSetup, [])
  const local = setup.data?.programs ?? true
  // What other clients have is the quickest; without any, a command is what documentation shows.
  const elsewhere = useData((s) => (setup.data?.programs ? loadCandidates(s) : Promise.resolve([])), [setup.data?.programs])
  const fresh = elsewhere.data?.filter((c) => c.state === 'new').length ?? 0
  const chosen = picked ?? (fresh > 0 ? 'clients' : 'command')
  if (!picked && !(setup.data ?? setup.error)) return <Skeleton />
  if (!picked && !(elsewhere.data ?? elsewhere.error)) return <Skeleton />
  const offered = Object.entries(ways).filter(([key]) => key !== 'clients' || chosen === 'clients' || !local || (elsewhere.data?.length ?? 0) > 0)
  const meant = kindOf(text)
  const paste = (e: ClipboardEvent) => {
    const given = e.clipboardData?.getData('text').trim() ?? ''
    const kind = kindOf(given)
    if (text || !kind || kind === chosen || !typed.has(chosen)) return
    e.preventDefault()
    setText(given)
    setChosen(kind)
  }
  return (
    <>
      <div class="segments" role="tablist" aria-label="Ways to add a server">
        {offered.map(([key, text]) => <button key={key} type="button" role="tab" aria-selected={key === chosen} onClick={() => setChosen(key as Way)}>{text}{key === 'clients' && fresh > 0 && <span class="count"> {fresh}</span>}</button>)}
      </div>
      <div role="tabpanel" aria-label={ways[chosen]} onPaste={paste}>
        {meant && meant !== chosen && typed.has(chosen) && <p class="notice" role="status">This looks like {about[meant]}. <button type="button" onClick={() => setChosen(meant)}>Add it as that</button></p>}
        {chosen === 'url' && <UpstreamFields address={{ text, change: setText }} done={done} cancel={cancel} />}
        {chosen === 'registry' && <RegistrySearch done={done} programs={local} />}
        {chosen === 'command' && (local ? <CommandForm text={text} change={setText} done={done} cancel={cancel} /> : <OnServer text="luanette upstream add NAME -- npx -y @modelcontextprotocol/server-filesystem ~" />)}
        {chosen === 'api' && (local ? <APIForm text={text} change={setText} done={done} cancel={cancel} /> : <OnServer text="luanette upstream add NAME --openapi https://api.example.org/openapi.json" />)}
        {chosen === 'clients' && (local ? <Import done={done} /> : <OnServer text="luanette import --all" />)}
      </div>
    </>
  )
}

/** The ways that begin with a text. */
const typed = new Set<Way>(['url', 'command', 'api'])

const about: Record<Kind, string> = { url: 'the URL of a server', command: 'a command', api: 'the document of an API' }

/** Says that programs are added on the server itself. */
function OnServer({ text }: { text: string }) {
  return <><Hint>This page does not decide what another machine runs. Run this on the machine of the server:</Hint><Command text={text} /></>
}

function CommandForm({ text, change, done, cancel }: { text: string; change: (text: string) => void; done: () => void; cancel?: () => void }) {
  const [name, setName] = useState<string>()
  const [env, setEnv] = useState('')
  const { busy, failure, problems, attempt } = useAttempt(done)
  const json = text.trim().startsWith('{')
  const add = async () => {
    if (json) return `${(await importServers({ text })).join(', ')} added, connecting`
    const variables = env.split('\n').filter((l) => l.includes('=')).map((l) => [l.slice(0, l.indexOf('=')).trim(), l.slice(l.indexOf('=') + 1).trim()])
    return `${await addCommand(name ?? nameOf(text), text, Object.fromEntries(variables) as Record<string, string>)} added, connecting`
  }
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(add) }}>
      <label for="command-text">Command, or JSON with mcpServers</label>
      <textarea id="command-text" required rows={json ? 8 : 2} spellcheck={false} placeholder="npx -y @modelcontextprotocol/server-filesystem /home/me" value={text} onInput={(e) => change(e.currentTarget.value)} aria-invalid={problems.command ? 'true' : undefined} />
      {problems.command && <p class="bad small problem" role="alert">{problems.command}</p>}
      {!json && (
        <>
          <label for="command-name">Name</label>
          <input id="command-name" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={name ?? nameOf(text)} onInput={(e) => setName(e.currentTarget.value)} />
          <details><summary>Environment variables</summary><label for="command-env">One NAME=value a line</label><textarea id="command-env" rows={3} spellcheck={false} value={env} onInput={(e) => setEnv(e.currentTarget.value)} /></details>
        </>
      )}
      {(failure || problems.env) && <p class="bad" role="alert">{failure || problems.env}</p>}
      <Hint>It is added to `luanette.toml` and started on this machine, with your rights.</Hint>
      <div class="row actions"><button class="main" type="submit" disabled={busy}>Connect</button>{cancel && <button type="button" onClick={cancel}>Cancel</button>}</div>
    </form>
  )
}

const states: Record<string, (c: Candidate) => string> = {
  known: (c) => `already here as ${c.name}`, twice: (c) => `the same as ${c.name}`, invalid: (c) => `invalid: ${c.problem ?? ''}`, disabled: () => 'disabled there',
}

/** The servers that other clients of this machine have. */
function Import({ done }: { done: () => void }) {
  const { data, error } = useData(loadCandidates, [])
  const [left, setLeft] = useState<Set<string>>(new Set()) // those not to import
  const [inputs, setInputs] = useState<Record<string, string>>({})
  const { busy, failure, attempt } = useAttempt(done)
  const possible = (data ?? []).filter((c) => c.state === 'new' || c.state === 'disabled')
  const chosen = possible.filter((c) => !left.has(c.name) && c.state === 'new')
  const toggle = (name: string, on: boolean) => setLeft(new Set(on ? [...left].filter((n) => n !== name) : [...left, name]))
  if (error) return <p class="bad">{error.message}</p>
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(async () => `${(await importServers({ names: chosen.map((c) => c.name), inputs })).join(', ')} imported, connecting`) }}>
      {data?.length === 0 && <Hint>No other client on this machine has servers. Choose another way above.</Hint>}
      <ul class="list" aria-label="Servers of other clients">
        {data?.map((c, i) => (
          <li key={i}>
            {c.state === 'new'
              ? <label><input type="checkbox" checked={!left.has(c.name)} onChange={(e) => toggle(c.name, e.currentTarget.checked)} /> <b>{c.name}</b> <span class="soft">from {c.client}</span></label>
              : <span class="soft"><b>{c.server}</b> from {c.client}: {states[c.state]?.(c) ?? c.state}</span>}
            <div class="mono soft small breaks">{c.target}</div>
            {chosen.includes(c) && c.inputs?.map((n) => <label key={n.id}>{n.description ?? n.id}<input type={n.secret ? 'password' : 'text'} autocomplete="off" required value={inputs[n.id] ?? ''} onInput={(e) => setInputs({ ...inputs, [n.id]: e.currentTarget.value })} /></label>)}
          </li>
        ))}
      </ul>
      {failure && <p class="bad" role="alert">{failure}</p>}
      {possible.length > 0 && <div class="row actions"><button class="main" type="submit" disabled={busy || chosen.length === 0}>{chosen.length > 0 ? `Import ${chosen.length}` : 'Choose what to import'}</button></div>}
    </form>
  )
}
