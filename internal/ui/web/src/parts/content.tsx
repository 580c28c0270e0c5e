// Shows a stored content according to its type.
import { readTable, textOf, typeName, viewOf, type View } from '../contents'
import { useData } from '../resource'
import { errorOf, request, urlOf } from '../api'
import { size } from '../format'
import { Code } from './code'
import { Grid } from './grid'
import { Markdown } from './markdown'
import { PianoRoll } from './pianoroll'
import { Value } from './value'
import { Sound } from './waveform'
import { Skeleton } from './skeleton'

const maxText = 256 * 1024
const maxBytes = 4 * 1024 * 1024

/** A preview of a content of this server. */
export function Preview({ address, type, bytes, name }: { address: string; type: string; bytes: number; name: string }) {
  const view = viewOf(type, name)
  if (view === 'midi') return <Roll address={address} bytes={bytes} />
  if (view === 'image') return <img class="shown" src={urlOf(address)} alt={name} />
  if (view === 'audio') return <Sound address={address} bytes={bytes} name={name} />
  if (view === 'abc' && address.endsWith('/content')) return <Tune address={address} bytes={bytes} />
  if (view === 'video') return <video class="shown" controls src={urlOf(address)} aria-label={name} />
  if (view === 'unknown' && bytes > maxText) return <p class="soft">{typeName(type)} has no preview. Download it instead.</p>
  return <Text address={address} bytes={bytes} view={view} type={type} />
}

async function bytesOf(address: string, signal: AbortSignal): Promise<ArrayBuffer> {
  const response = await request(address, { signal })
  if (!response.ok) throw await errorOf(response)
  return response.arrayBuffer()
}

function Roll({ address, bytes }: { address: string; bytes: number }) {
  const { data, error } = useData(async (s) => (bytes > maxBytes ? undefined : new Uint8Array(await bytesOf(address, s))), [address])
  if (bytes > maxBytes) return <p class="soft">At {size(bytes)} this file is too large for a preview.</p>
  if (error) return <p class="bad">{error.message}</p>
  return data ? <PianoRoll bytes={data} /> : <Skeleton />
}

/** A tune in ABC notation: the server converts it to MIDI. */
function Tune({ address, bytes }: { address: string; bytes: number }) {
  return (
    <>
      <Roll address={address.replace(/content$/, 'midi')} bytes={bytes} />
      <details open><summary class="soft">ABC notation</summary><Text address={address} bytes={bytes} view="text" type="text/vnd.abc" /></details>
    </>
  )
}

function Text({ address, bytes, view, type }: { address: string; bytes: number; view: View; type: string }) {
  const { data, error } = useData(async (s) => textOf(new Uint8Array(await bytesOf(address, s)).slice(0, maxText)) ?? null, [address])
  if (error) return <p class="bad">{error.message}</p>
  if (data === undefined) return <Skeleton />
  if (data === null) return <p class="soft">{typeName(type)} has no preview. Download it instead.</p>
  return (
    <>
      <Words text={data} view={view} type={type} cut={bytes > maxText} />
      {bytes > maxText && <p class="soft">The first {size(maxText)} of {size(bytes)}.</p>}
    </>
  )
}

/** A text as its view shows it. */
function Words({ text, view, type, cut }: { text: string; view: View; type: string; cut: boolean }) {
  if (view === 'markdown') return <Markdown text={text} />
  if (view === 'table') return <Grid rows={readTable(text, cut)} label="Rows" />
  if (view === 'code') return <Code text={text} language={type.split('/').pop()!.replace(/^x-/, '')} />
  return view === 'json' ? <Parsed text={text} /> : <pre>{text}</pre>
}

function Parsed({ text }: { text: string }) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return <pre>{text}</pre>
  }
  return <Value value={value} />
}
