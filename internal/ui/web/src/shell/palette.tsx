// Ctrl K: go to a page or a server, run a tool or a script, connect a server.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { may } from '../api'
import { addressOf, find } from '../manual'
import { call } from '../mcp'
import type { Way } from '../parts/connect'
import { useData } from '../resource'
import { go } from '../route'
import { kindOf } from '../setup'
import { lazy } from './lazy'
import { visiblePages } from './pages'
import { densities, density, theme, themes } from './preferences'

interface Entry {
  kind: string
  text: string
  detail?: string
  act?: () => void
  step?: Step // what is done in the palette itself
}

/** What is done in the palette. */
export interface Step {
  tool?: string
  script?: { hash: string; name: string }
  connect?: { way: Way; text?: string }
}

const Doing = lazy(() => import('./doing').then((m) => m.Doing))

const next = <T,>(all: readonly T[], now: T): T => all[(all.indexOf(now) + 1) % all.length]

/** What can be begun from everywhere. */
function commands(): Entry[] {
  const connect = (text: string, way: Way): Entry => ({ kind: 'connect', text, step: { connect: { way } } })
  return [
    ...(may('admin') ? [
      connect('Connect a server', 'url'), connect('Connect a server by its command', 'command'), connect('Connect an API', 'api'),
      connect('Connect a server of the registry', 'registry'), connect('Connect the servers of your clients', 'clients'),
    ] : []),
    { kind: 'do', text: 'Write a script', act: () => go('playground') },
    { kind: 'do', text: `Colours: ${next(themes, theme.value)}`, act: () => (theme.value = next(themes, theme.value)) },
    { kind: 'do', text: `Density: ${next(densities, density.value)}`, act: () => (density.value = next(densities, density.value)) },
  ]
}

/** A server that the text itself is the address or command of. */
function pasted(text: string): Entry[] {
  const way = may('admin') ? kindOf(text) : undefined
  return way ? [{ kind: 'connect', text: text.trim(), detail: { url: 'server', command: 'command', api: 'API' }[way], step: { connect: { way, text: text.trim() } } }] : []
}

/** The tools and scripts that match. The server ranks them as it does for agents. */
async function search(query: string, signal: AbortSignal): Promise<Entry[]> {
  if (query.trim() === '') return []
  const [docs, tools, scripts] = await Promise.allSettled([
    find(query, signal),
    !may('mcp') ? { tools: [] } : call<{ tools: { name: string; description: string }[] }>('search_tools', { query, limit: 8 }, signal),
    !may('mcp') ? { scripts: [] } : call<{ scripts: { name: string; hash: string; description?: string }[] }>('script_search', { vibe: query, limit: 5 }, signal),
  ])
  return [
    ...(tools.status === 'fulfilled' ? tools.value.tools : []).map((t) => ({ kind: 'run tool', text: t.name, detail: t.description, step: { tool: t.name } })),
    ...(scripts.status === 'fulfilled' ? scripts.value.scripts ?? [] : []).map((s) => ({ kind: 'run script', text: s.name || s.hash.slice(0, 12), detail: s.description, step: { script: { hash: s.hash, name: s.name || s.hash.slice(0, 12) } } })),
    ...(docs.status === 'fulfilled' ? docs.value.slice(0, 4) : []).map((f) => ({ kind: 'help', text: f.title, detail: f.title === f.page ? f.excerpt : f.page, act: () => go(addressOf(f.path, f.anchor).slice(2)) })),
  ]
}

/** The names of the servers, as entries. */
async function servers(signal: AbortSignal): Promise<Entry[]> {
  if (!may('mcp')) return []
  const { upstreams } = await call<{ upstreams: { namespace: string; state: string }[] }>('mcp_list_upstreams', {}, signal)
  return upstreams.map((u) => ({ kind: 'server', text: u.namespace, detail: u.state, act: () => go(`servers/${encodeURIComponent(u.namespace)}`) }))
}

export function Palette({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [step, setStep] = useState<Step>()
  // Before the next key arrives: who types at once loses no letter.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  useLayoutEffect(() => (dialog.current?.querySelector<HTMLElement>('form :is(input, textarea, select), [role=tabpanel] input') ?? dialog.current?.querySelector<HTMLElement>('input, button'))?.focus(), [step])
  return (
    <dialog ref={dialog} class={step ? 'palette doing' : 'palette'} aria-label="Search and commands" onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      {step ? <Doing step={step} back={() => setStep(undefined)} close={close} /> : <Choices close={close} begin={setStep} />}
    </dialog>
  )
}

/** A text once nobody has changed it for a moment: not every letter is worth a search. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(setSettled, 120, text)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

/** The list that is searched. */
function Choices({ close, begin }: { close: () => void; begin: (step: Step) => void }) {
  const list = useRef<HTMLUListElement>(null)
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const asked = useSettled(query)
  const found = useData((s) => search(asked, s), [asked])
  const known = useData(servers, [])
  const pages = visiblePages().filter((p) => p.path !== 'artifacts').map((p): Entry => ({ kind: 'page', text: p.title, act: () => go(p.path) }))
  const words = query.toLowerCase()
  const fixed = [...pages, ...(known.data ?? []), ...commands()].filter((e) => e.text.toLowerCase().includes(words))
  const entries = [...pasted(query), ...fixed.slice(0, words ? 6 : 20), ...(found.data ?? [])]
  const chosen = Math.min(at, entries.length - 1)
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen])
  const act = (e?: Entry) => {
    if (e?.step) return begin(e.step)
    if (e) close()
    e?.act?.()
  }
  const press = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (step) setAt((chosen + step + entries.length) % entries.length)
    else if (e.key === 'Enter') act(entries[chosen])
    else return
    e.preventDefault()
  }
  return (
    <>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={entries.length > 0 ? `palette-${chosen}` : undefined} aria-label="Search and commands" placeholder="Search pages, servers, tools, scripts; or paste a URL or command to connect" value={query} onInput={(e) => { setQuery(e.currentTarget.value); setAt(0) }} onKeyDown={press} />
      <ul id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {entries.map((e, i) => (
          <li key={`${e.kind} ${e.text}`} id={`palette-${i}`} role="option" aria-selected={i === chosen} onClick={() => act(e)} onMouseMove={() => setAt(i)}>
            <span class="kind">{e.kind}</span><span class="oneline">{e.text}</span><span class="soft oneline">{e.detail}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="soft">Nothing found.</p>}
    </>
  )
}
