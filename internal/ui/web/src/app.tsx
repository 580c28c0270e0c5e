import { useEffect, useState } from 'preact/hooks'
import { me } from './api'
import { heading } from './heading'
import { Login } from './pages/login'
import { Notices } from './parts/notices'
import { route } from './route'
import { Banner } from './shell/banner'
import { Mark } from './shell/icon'
import { visiblePages } from './shell/pages'
import { Palette } from './shell/palette'
import { Help, useShortcuts } from './shell/shortcuts'
import { Sidebar } from './shell/sidebar'

/** The login page, or the side bar with the page of the address beside it. */
export function App() {
  if (me.value === undefined) return <Connecting />
  if (me.value === null) return <LoginPage />
  return <Signed />
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
  useShortcuts({ palette: () => setDialog('palette'), help: () => setDialog('help') })
  const { page: path, rest } = route.value
  const page = visiblePages().find((p) => p.path === (path || 'overview'))
  const shown = page && heading.value
  document.title = `${page ? [shown?.title ?? rest, page.title].filter(Boolean).join(' · ') : 'Not found'} · Luanette`
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById('content')?.focus() }}>Skip to content</a>
      <Sidebar current={page} search={() => setDialog('palette')} />
      <main id="content" tabIndex={-1}>
        <Banner />
        <div class="heading">
          {shown?.back && <a class="back" href={shown.back.href}>{shown.back.title}</a>}
          <h1>{shown?.title ?? visiblePages().find((p) => p.path === page?.within)?.title ?? page?.title ?? 'Not found'}</h1>
        </div>
        {page ? <page.view rest={rest} /> : <p>There is no page at <code>#/{path}</code>, or your key may not see it. <a href="#/overview">Overview</a></p>}
      </main>
      {dialog === 'palette' && <Palette close={() => setDialog(undefined)} />}
      {dialog === 'help' && <Help close={() => setDialog(undefined)} />}
      <Notices />
    </>
  )
}
