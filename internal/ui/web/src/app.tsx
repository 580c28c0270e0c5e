import { useEffect, useState } from 'preact/hooks'
import { me } from './api'
import { heading } from './heading'
import { Login } from './pages/login'
import { Hint } from './parts/hint'
import { NewToken } from './parts/newtoken'
import { Notices } from './parts/notices'
import { route } from './route'
import { Banner } from './shell/banner'
import { Mark } from './shell/icon'
import { offBecause, visiblePages } from './shell/pages'
import { lazy } from './shell/lazy'
import { Palette } from './shell/palette'
import { useShortcuts } from './shell/shortcuts'
import { Sidebar } from './shell/sidebar'

const Help = lazy(() => import('./shell/help').then((m) => m.Help))

/** The login page, or the side bar with the page of the address beside it. */
export function App() {
  if (me.value === undefined) return <Connecting />
  return <>{me.value === null ? <LoginPage /> : <Signed />}<NewToken /></>
}

/** Nothing at first: the server answers sooner than anybody reads. */
function Connecting() {
  const [slow, setSlow] = useState(false)
  useEffect(() => {
    const timer = setTimeout(setSlow, 500, true)
    return () => clearTimeout(timer)
  }, [])
  return <main class="alone">{slow && <p class="soft" role="status">Connecting…</p>}</main>
}

function LoginPage() {
  document.title = 'Log in · Luanette'
  return (
    <main class="alone">
      <p class="brand"><Mark />Luanette</p>
      <h1>Log in</h1>
      <Login />
      <Notices />
    </main>
  )
}

function Signed() {
  const [dialog, setDialog] = useState<'palette' | 'help'>()
  useShortcuts({ palette: () => setDialog('palette'), help: () => setDialog((d) => (d === 'help' ? undefined : 'help')) })
  const { page: path, rest } = route.value
  const page = visiblePages().find((p) => p.path === (path || 'overview'))
  const shown = page && heading.value
  document.title = `${page ? [shown?.title ?? rest, page.title].filter(Boolean).join(' · ') : 'Not found'} · Luanette`
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById('content')?.focus() }}>Skip to content</a>
      <Sidebar current={page} search={() => setDialog('palette')} help={() => setDialog('help')} />
      <main id="content" tabIndex={-1}>
        <Banner />
        <div class="heading">
          {shown?.back && <a class="back" href={shown.back.href}>{shown.back.title}</a>}
          <h1>{shown?.title ?? visiblePages().find((p) => p.path === page?.within)?.title ?? page?.title ?? 'Not found'}</h1>
        </div>
        {page ? <page.view rest={rest} /> : offBecause(path) ? <Hint>{offBecause(path)!}</Hint> : <p>There is no page at <code>#/{path}</code>, or your key may not see it. <a href="#/overview">Overview</a></p>}
      </main>
      {dialog === 'palette' && <Palette close={() => setDialog(undefined)} />}
      {dialog === 'help' && <Help page={path || 'overview'} close={() => setDialog(undefined)} />}
      <Notices />
    </>
  )
}
