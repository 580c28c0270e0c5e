// The side bar: every page in its group, what waits for a decision, and the connection.
import { useEffect, useState } from 'preact/hooks'
import { logout, may, me } from '../api'
import { missed, online } from '../events'
import { OrgChoice } from '../parts/orgchoice'
import { route } from '../route'
import { attempt } from '../upstream'
import { useWaiting, waiting } from '../waiting'
import { Icon, Mark } from './icon'
import { groups, isVisible, type Page } from './pages'
import { density, densities, theme, themes } from './preferences'

export function Sidebar({ current, search, help }: { current?: Page; search: () => void; help: () => void }) {
  const [open, setOpen] = useState(false)
  useEffect(() => setOpen(false), [route.value])
  useWaiting()
  const decisions = (waiting.value?.approvals.length ?? 0) + (waiting.value?.definitions ?? 0)
  return (
    <header class="sidebar">
      <div class="top">
        <a class="brand" href="#/overview"><Mark />Luanette</a>
        <button type="button" class="icononly search" aria-label="Search and commands" onClick={search}><Icon name="search" /></button>
        <button type="button" class="icononly menu" aria-label="Menu" aria-expanded={open} aria-controls="menu" onClick={() => setOpen(!open)}><Icon name="menu" /></button>
      </div>
      <button type="button" class="command" onClick={search}><Icon name="search" />Search or run… <kbd>Ctrl K</kbd></button>
      <div id="menu" class={open ? 'open' : ''}>
        <nav aria-label="Pages">
          {groups.map((g) => (
            <ul key={g.title} aria-label={g.title}>
              {g.title && <li class="group" aria-hidden="true">{g.title}</li>}
              {g.pages.filter((p) => isVisible(p) && !p.within && !p.hidden).map((p) => (
                <li key={p.path}>
                  <a href={`#/${p.path}`} aria-current={p.path === (current?.within ?? current?.path) ? 'page' : undefined}>
                    <Icon name={p.path} />{p.title}
                    {p.path === 'approvals' && decisions > 0 && <b class="badge warn">{decisions}<span class="hidden"> to decide</span></b>}
                  </a>
                </li>
              ))}
            </ul>
          ))}
        </nav>
        <div class="foot">
          <button type="button" class="entry" onClick={help}><Icon name="help" />Help <kbd>?</kbd></button>
          {(me.value?.orgs?.length ?? 0) > 1 && <label class="preference">Organisation<OrgChoice /></label>}
          <Preference name="Colours" values={themes} value={theme.value} change={(v) => (theme.value = v)} />
          <Preference name="Density" values={densities} value={density.value} change={(v) => (density.value = v)} />
          {me.value && !me.value.open && <div class="who"><a href="#/you">{me.value.name}</a> <button type="button" onClick={() => void attempt(logout)}>Log out</button></div>}
          <Connection />
        </div>
      </div>
    </header>
  )
}

function Preference<T extends string>({ name, values, value, change }: { name: string; values: readonly T[]; value: T; change: (v: T) => void }) {
  return (
    <label class="preference">{name}
      <select value={value} onChange={(e) => change(e.currentTarget.value as T)}>{values.map((v) => <option key={v}>{v}</option>)}</select>
    </label>
  )
}

/** Whether the event stream is connected. */
function Connection() {
  if (me.value && !may('read')) return <span class="link" role="status" title="This key lacks the scope read, so live events are not shown.">not live</span>
  return (
    <span class={`link ${online.value ? 'good' : 'bad'}`} role="status">
      {online.value ? 'live' : 'offline'}{missed.value > 0 && `, ${missed.value} events missed`}
    </span>
  )
}
