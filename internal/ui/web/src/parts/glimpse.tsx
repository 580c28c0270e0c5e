// The beginning of a stored content, as it is shown in a list: it looks like what it is.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { errorOf, request, urlOf } from '../api'
import { readTable, tableOf, textOf, typeName, viewOf } from '../contents'
import { readNotes } from '../midi'
import { useData } from '../resource'
import { Markdown } from './markdown'
import { peaksOf } from './waveform'

/** How much of a text is loaded for its beginning. */
const most = 4096
const maxBinary = 2 * 1024 * 1024

export interface Stored {
  address: string
  type: string
  bytes: number
  name: string
}

/** What it shows is read once it comes near the view. */
export function Glimpse(of: Stored) {
  const box = useRef<HTMLDivElement>(null)
  const [near, setNear] = useState(false)
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && setNear(true), { rootMargin: '300px' })
    watch.observe(box.current!)
    return () => watch.disconnect()
  }, [])
  return <div class="glimpse" ref={box} aria-hidden="true" inert>{near && <Beginning {...of} />}</div>
}

function Beginning(of: Stored) {
  const view = viewOf(of.type, of.name)
  if (view === 'image') return <img src={urlOf(of.address)} alt="" loading="lazy" />
  if (view === 'midi' || view === 'abc') return <Notes {...of} address={view === 'abc' ? of.address.replace(/content$/, 'midi') : of.address} />
  if (view === 'audio') return <Wave {...of} />
  return view === 'video' ? <Nothing {...of} /> : <Words {...of} />
}

function Nothing({ type }: Stored) {
  return <span class="none">{typeName(type)}</span>
}

async function load(address: string, signal: AbortSignal, range?: string): Promise<Uint8Array> {
  const response = await request(address, { signal, headers: range ? { Range: range } : {} })
  if (!response.ok) throw await errorOf(response)
  return new Uint8Array(await response.arrayBuffer())
}

function Words(of: Stored) {
  const { data: text, error } = useData(async (s) => textOf((await load(of.address, s, of.bytes > most ? `bytes=0-${most - 1}` : undefined)).slice(0, most)) ?? null, [of.address])
  if (error || text === null) return <Nothing {...of} />
  if (text === undefined) return null
  const view = viewOf(of.type, of.name), cut = of.bytes > most
  if (view === 'markdown') return <Markdown text={text} whole={false} />
  const rows = view === 'table' ? readTable(text, cut, 8) : view === 'json' && !cut ? tableOf(parsed(text), 8) : undefined
  if (rows && rows.length > 1) return <table class="grid"><tbody>{rows.slice(0, 6).map((r, i) => <tr key={i}>{r.slice(0, 4).map((v, n) => (i === 0 ? <th key={n}>{v}</th> : <td key={n}>{v}</td>))}</tr>)}</tbody></table>
  return <pre>{view === 'json' && !cut ? JSON.stringify(parsed(text), null, 2) ?? text : text}</pre>
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function Notes(of: Stored) {
  const { data, error } = useData((s) => (of.bytes > maxBinary ? Promise.resolve(null) : load(of.address, s)), [of.address])
  const notes = useMemo(() => (data ? readNotes(data) : []), [data])
  if (error || data === null) return <Nothing {...of} />
  const end = Math.max(...notes.map((n) => n.end)), low = Math.min(...notes.map((n) => n.pitch)), high = Math.max(...notes.map((n) => n.pitch))
  const each = 120 / (high - low + 1)
  return (
    <svg viewBox="0 0 260 140" preserveAspectRatio="none">
      {notes.slice(0, 2000).map((n, i) => <rect key={i} x={(n.start / end) * 256 + 2} y={10 + (high - n.pitch) * each} width={Math.max(2, ((n.end - n.start) / end) * 256 - 1)} height={Math.min(6, Math.max(2, each - 1))} rx="1" />)}
    </svg>
  )
}

function Wave(of: Stored) {
  const { data: peaks, error } = useData((s) => (of.bytes > maxBinary ? Promise.resolve(null) : peaksOf(of.address, s, 64)), [of.address])
  if (error || peaks === null) return <Nothing {...of} />
  return <svg viewBox="0 -50 256 100" preserveAspectRatio="none">{peaks?.map((p, i) => <rect key={i} x={i * 4} y={-p * 40 - 1} width="2.4" height={p * 80 + 2} rx="1" />)}</svg>
}
