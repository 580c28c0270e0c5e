import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { logout, may, me } from './api'
import { online, missed } from './events'
import { Approvals } from './pages/approvals'
import { Artifacts } from './pages/artifacts'
import { Chat } from './pages/chat'
import { Jobs } from './pages/jobs'
import { Login } from './pages/login'
import { Overview } from './pages/overview'
import { Playground } from './pages/playground'
import { Scripts } from './pages/scripts'
import { Settings } from './pages/settings'
import { Timeline } from './pages/timeline'
import { Tools } from './pages/tools'
import { Traces } from './pages/traces'
import { Notices, notify } from './parts/notices'

interface Page {
  path: string
  title: string
  view: ComponentType<{ rest: string }>
}

/** Every page, in the order of the menu. */
const pages: Page[] = [
  { path: 'overview', title: 'Overview', view: Overview },
  { path: 'tools', title: 'Tools', view: Tools },
  { path: 'playground', title: 'Playground', view: Playground },
  { path: 'jobs', title: 'Jobs', view: Jobs },
  { path: 'scripts', title: 'Scripts', view: Scripts },
  { path: 'artifacts', title: 'Artifacts', view: Artifacts },
  { path: 'timeline', title: 'Timeline', view: Timeline },
  { path: 'approvals', title: 'Approvals', view: Approvals },
  { path: 'chat', title: 'Chat', view: Chat },
  { path: 'traces', title: 'Traces', view: Traces },
  { path: 'settings', title: 'Settings', view: Settings },
]

/** The part of the URL after #/. */
const route = signal(location.hash.slice(2))
addEventListener('hashchange', () => (route.value = location.hash.slice(2)))

async function logOut(): Promise<void> {
  try {
    await logout()
  } catch (e) {
    notify('bad', (e as Error).message)
  }
}

export function App() {
  const [path, ...rest] = route.value.split('/')
  const page = pages.find((p) => p.path === path) ?? pages[0]
  document.title = `${page.title} · Luanette`
  const menu = useRef<HTMLElement>(null)
  useEffect(() => menu.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }), [page])
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById('content')?.focus() }}>Skip to content</a>
      <header>
        <strong class="brand">Luanette</strong>
        <nav aria-label="Pages" ref={menu}>
          {pages.map((p) => (
            <a key={p.path} href={`#/${p.path}`} aria-current={p === page ? 'page' : undefined}>{p.title}</a>
          ))}
        </nav>
        {me.value && !me.value.open && <span class="soft who">{me.value.name} <button type="button" onClick={() => void logOut()}>Log out</button></span>}
        <Connection />
      </header>
      <main id="content" tabIndex={-1}>
        <h1>{me.value === null ? 'Log in' : page.title}</h1>
        {me.value === undefined ? <p class="soft">Connecting…</p> : me.value === null ? <Login /> : <page.view rest={rest.map(decodeURIComponent).join('/')} />}
      </main>
      <Notices />
    </>
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
