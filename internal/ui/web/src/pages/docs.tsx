// The documentation: a list with a search, and one page of it.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useHeading } from '../heading'
import { addressOf, anchorOf, find, pages, pageText } from '../manual'
import { Markdown, type Runnable } from '../parts/markdown'
import { keepDraft } from '../playground/draft'
import { useData } from '../resource'
import { go, route } from '../route'

export function Docs({ rest }: { rest: string }) {
  return rest ? <Page key={rest} path={rest} /> : <Contents />
}

function Page({ path }: { path: string }) {
  const { data, error } = useData((s) => pageText(path, s), [path])
  const box = useRef<HTMLDivElement>(null)
  const at = route.value.query.get('at') ?? ''
  const title = /^# (.*)/m.exec(data ?? '')?.[1]
  useHeading(title ?? (error && 'No such page'), { title: 'Documentation', href: '#/docs' })
  useEffect(() => { // the renderer may still be loading
    if (!data || !at) return
    const scroll = () => {
      const heading = [...(box.current?.querySelectorAll('h1, h2, h3, h4') ?? [])].find((h) => anchorOf(h.textContent ?? '') === at)
      heading?.scrollIntoView()
      return !!heading
    }
    if (scroll()) return
    const watch = new MutationObserver(() => scroll() && watch.disconnect())
    watch.observe(box.current!, { childList: true, subtree: true })
    return () => watch.disconnect()
  }, [data, at])
  if (error) return <p class="bad">{error.message}</p>
  return <div class="manual" ref={box}>{data && <Markdown text={data.replace(/^# .*\n/, '')} tryIt={tryIt} />}</div>
}

/** Puts an example into the playground, where it runs. */
export function tryIt(language: Runnable, code: string): void {
  keepDraft('', { language, code })
  go('playground')
}

/** The pages that are read first; the others follow. */
const first = ['README', 'install', 'clients', 'upstreams', 'code_mode', 'scripts', 'jobs', 'approvals', 'chat', 'hud', 'cli', 'configuration', 'security', 'people', 'operate']

function Contents() {
  const { data } = useData(pages, [])
  const known = new Map(data?.map((p) => [p.path, p.title]))
  const link = (path: string) => <li key={path}><a href={addressOf(path)}>{known.get(path)}</a></li>
  return (
    <>
      <Search />
      <div class="columns">
        <section aria-label="To begin with"><h2>To begin with</h2><ul class="list">{first.filter((p) => known.has(p)).map(link)}</ul></section>
        <section aria-label="More"><h2>More</h2><ul class="list">{data?.filter((p) => !first.includes(p.path) && !p.path.includes('/')).map((p) => link(p.path))}</ul></section>
        <section aria-label="Error codes"><h2>Error codes</h2><ul class="list">{data?.filter((p) => p.path.startsWith('errors/')).map((p) => link(p.path))}</ul></section>
      </div>
    </>
  )
}

/** The search in the documentation, as the page and the help have it. */
export function Search({ none }: { none?: string }) {
  const [words, setWords] = useState('')
  const { data } = useData((s) => (words.trim() ? find(words, s) : Promise.resolve(undefined)), [words])
  return (
    <>
      <input type="search" class="wide" aria-label="Search the documentation" placeholder="Search the documentation" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
      {data?.length === 0 && <p class="soft">Nothing found. {none}</p>}
      {data && data.length > 0 && <ul class="list" aria-label="Found">{data.map((f) => <li key={f.path + f.anchor}><a href={addressOf(f.path, f.anchor)}>{f.page}{f.title !== f.page && ` › ${f.title}`}</a>{f.excerpt && <span class="second">{f.excerpt}</span>}</li>)}</ul>}
    </>
  )
}
