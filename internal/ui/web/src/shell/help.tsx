// The help beside a page: what the documentation says about it, a search, and the keys. The page stays usable.
import { useEffect, useRef } from 'preact/hooks'
import { about, addressOf, pageText, part } from '../manual'
import { Search, tryIt } from '../pages/docs'
import { Markdown } from '../parts/markdown'
import { useData } from '../resource'
import { visiblePages } from './pages'

export function Help({ page, close }: { page: string; close: () => void }) {
  const box = useRef<HTMLElement>(null)
  const [path, anchor] = about[page] ?? ['README']
  const { data } = useData((s) => pageText(path, s), [path])
  useEffect(() => box.current?.focus(), [])
  const rows: [string, string][] = [
    ['Ctrl K', 'search and commands'], ['/', 'search on this page'], ['?', 'this help'], ['Esc', 'close'],
    ['j, k', 'next, previous (approvals)'], ['a, d', 'allow, deny (approvals)'], ['Ctrl Enter', 'run (playground)'],
    ...visiblePages().map((p): [string, string] => [`g ${p.key}`, p.title]),
  ]
  return (
    <aside class="help" aria-label="Help" tabIndex={-1} ref={box} onKeyDown={(e) => e.key === 'Escape' && close()}>
      <div class="row spread"><h2>Help</h2><button type="button" onClick={close}>Close</button></div>
      <Search />
      <section aria-label="About this page">{data && <Markdown text={brief(anchor ? part(data, anchor) : data)} tryIt={tryIt} />}<p><a href={addressOf(path, anchor)}>Read all of it</a></p></section>
      <section aria-label="Keys"><h3>Keys</h3><dl class="keys">{rows.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl></section>
    </aside>
  )
}

/** How much of a part the help shows, in characters. */
const most = 3000

/** The beginning of a text, cut between paragraphs. */
function brief(text: string): string {
  if (text.length <= most) return text
  const end = text.lastIndexOf('\n\n', most)
  const cut = text.slice(0, end > 0 ? end : most)
  return (cut.match(/^```/gm)?.length ?? 0) % 2 === 1 ? cut.slice(0, cut.lastIndexOf('```')) : cut
}
