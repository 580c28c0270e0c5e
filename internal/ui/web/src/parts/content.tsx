// Shows a stored content according to its type.
import { useData } from '../resource'
import { errorOf, request } from '../api'
import { size } from '../format'
import { Json } from './json'
import { PianoRoll } from './pianoroll'
import { Sound } from './waveform'

const maxText = 256 * 1024
const maxBytes = 4 * 1024 * 1024

/** A preview of a content of this server. */
export function Preview({ address, type, bytes, name }: { address: string; type: string; bytes: number; name: string }) {
  const kind = type.split(';')[0].trim().toLowerCase()
  if (kind.includes('midi')) return <Roll address={address} bytes={bytes} />
  if (kind.startsWith('image/')) return <img class="shown" src={address} alt={name} />
  if (kind.startsWith('audio/')) return <Sound address={address} bytes={bytes} name={name} />
  if (kind === 'text/vnd.abc' && address.endsWith('/content')) return <Tune address={address} bytes={bytes} />
  if (kind.startsWith('video/')) return <video class="shown" controls src={address} aria-label={name} />
  if (kind.startsWith('text/') || kind === 'application/json' || kind.endsWith('+json') || kind.includes('lua') || kind.includes('javascript')) {
    return <Text address={address} bytes={bytes} json={kind.includes('json')} />
  }
  return <p class="soft">There is no preview of {type || 'this type'}. Download it instead.</p>
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
  return data ? <PianoRoll bytes={data} /> : <p class="soft">…</p>
}

/** A tune in ABC notation: the server converts it to MIDI. */
function Tune({ address, bytes }: { address: string; bytes: number }) {
  return (
    <>
      <Roll address={address.replace(/content$/, 'midi')} bytes={bytes} />
      <details open><summary class="soft">ABC notation</summary><Text address={address} bytes={bytes} json={false} /></details>
    </>
  )
}

function Text({ address, bytes, json }: { address: string; bytes: number; json: boolean }) {
  const { data, error } = useData(async (s) => new TextDecoder().decode((await bytesOf(address, s)).slice(0, maxText)), [address])
  if (error) return <p class="bad">{error.message}</p>
  if (data === undefined) return <p class="soft">…</p>
  return (
    <>
      {json ? <Parsed text={data} /> : <pre>{data}</pre>}
      {bytes > maxText && <p class="soft">The first {size(maxText)} of {size(bytes)}.</p>}
    </>
  )
}

function Parsed({ text }: { text: string }) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return <pre>{text}</pre>
  }
  return <Json value={value} />
}
