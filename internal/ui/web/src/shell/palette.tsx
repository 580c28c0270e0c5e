// Ctrl K: go to a page, a server, a tool or a script, or begin something.
import { useEffect, useRef, useState } from 'preact/hooks'
import { may } from '../api'
import { call } from '../mcp'
import { useData } from '../resource'
import { go } from '../route'
import { visiblePages } from './pages'
import { densities, density, theme, themes } from './preferences'

interface Entry {
  kind: string
  text: string
  detail?: string
  act: () => void
}

const next = <T,>(all: readonly T[], now: T): T => all[(all.indexOf(now) + 1) % all.length]

/** What can be begun from everywhere. */
function commands(): Entry[] {
  return [
    ...(may('admin') ? [
      { kind: 'do', text: 'Connect a server', act: () => go('servers?add=url') },
      { kind: 'do', text: 'Connect a server by its command', act: () => go('servers?add=command') },
      { kind: 'do', text: 'Connect a server of the registry', act: () => go('servers?add=registry') },
      { kind: 'do', text: 'Connect the servers of your clients', act: () => go('servers?add=clients') },
    ] : []),
    { kind: 'do', text: 'Write a script', act: () => go('playground') },
    { kind: 'do', text: `Colours: ${next(themes, theme.value)}`, act: () => (theme.value = next(themes, theme.value)) },
    { kind: 'do', text: `Density: ${next(densities, density.value)}`, act: () => (density.value = next(densities, density.value)) },
  ]
}

/** The tools and scripts that match. The server ranks them as it does for agents. */
async function search(query: string, signal: AbortSignal): Promise<Entry[]> {
  if (query.trim() === '' || !may('mcp')) return []
  const [tools, scripts] = await Promise.allSettled([
    call<{ tools: { name: string; description: string }[] }>('search_tools', { query, limit: 8 }, signal),
    call<{ scripts: { name: string; hash: string; description?: string }[] }>('script_search', { vibe: query, limit: 5 }, signal),
  ])
  return [
    ...(tools.status === 'fulfilled' ? tools.value.tools : []).map((t) => ({ kind: 'run tool', text: t.name, detail: t.description, act: () => go(`tools/${encodeURIComponent(t.name)}`) })),
    ...(scripts.status === 'fulfilled' ? scripts.value.scripts ?? [] : []).map((s) => ({ kind: 'run script', text: s.name, detail: s.description, act: () => go(`scripts/${s.hash}`) })),
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
  const list = useRef<HTMLUListElement>(null)
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const found = useData((s) => search(query, s), [query])
  const known = useData(servers, [])
  useEffect(() => dialog.current?.showModal(), [])
  const pages = visiblePages().map((p): Entry => ({ kind: 'page', text: p.title, act: () => go(p.path) }))
  const words = query.toLowerCase()
  const fixed = [...pages, ...(known.data ?? []), ...commands()].filter((e) => e.text.toLowerCase().includes(words))
  const entries = [...fixed.slice(0, words ? 6 : 20), ...(found.data ?? [])]
  const chosen = Math.min(at, entries.length - 1)
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen])
  const act = (e?: Entry) => {
    if (!e) return
    close()
    e.act()
  }
  const press = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (step) setAt((chosen + step + entries.length) % entries.length)
    else if (e.key === 'Enter') act(entries[chosen])
    else return
    e.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label="Search and commands" onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={entries.length > 0 ? `palette-${chosen}` : undefined} aria-label="Search and commands" placeholder="Search pages, servers, tools, scripts…" value={query} onInput={(e) => { setQuery(e.currentTarget.value); setAt(0) }} onKeyDown={press} />
      <ul id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {entries.map((e, i) => (
          <li key={`${e.kind} ${e.text}`} id={`palette-${i}`} role="option" aria-selected={i === chosen} onClick={() => act(e)} onMouseMove={() => setAt(i)}>
            <span class="kind">{e.kind}</span><span>{e.text}</span><span class="soft oneline">{e.detail}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="soft">Nothing found.</p>}
    </dialog>
  )
}
