// A content of some type, shown as what it is.
import { useData } from '../resource'
import { ask, refusal } from '../api'
import { size } from '../format'
import { Json } from './json'
import { PianoRoll } from './pianoroll'

const textMost = 256 * 1024
const bytesMost = 4 * 1024 * 1024

/** What can be seen or heard of a content at an address of this server. */
export function Preview({ address, type, bytes, name }: { address: string; type: string; bytes: number; name: string }) {
  const kind = type.split(';')[0].trim().toLowerCase()
  if (kind.includes('midi')) return <Roll address={address} bytes={bytes} />
  if (kind.startsWith('image/')) return <img class="shown" src={address} alt={name} />
  if (kind.startsWith('audio/')) return <audio controls src={address} aria-label={name} />
  if (kind.startsWith('video/')) return <video class="shown" controls src={address} aria-label={name} />
  if (kind.startsWith('text/') || kind === 'application/json' || kind.endsWith('+json') || kind.includes('lua') || kind.includes('javascript')) {
    return <Text address={address} bytes={bytes} json={kind.includes('json')} />
  }
  return <p class="soft">Nothing of {type || 'this type'} can be shown here. It can be downloaded.</p>
}

async function bytesOf(address: string, signal: AbortSignal): Promise<ArrayBuffer> {
  const answer = await ask(address, { signal })
  if (!answer.ok) throw await refusal(answer)
  return answer.arrayBuffer()
}

function Roll({ address, bytes }: { address: string; bytes: number }) {
  const { data, error } = useData(async (s) => (bytes > bytesMost ? undefined : new Uint8Array(await bytesOf(address, s))), [address])
  if (bytes > bytesMost) return <p class="soft">{size(bytes)} are too much to draw.</p>
  if (error) return <p class="bad">{error.message}</p>
  return data ? <PianoRoll bytes={data} /> : <p class="soft">…</p>
}

function Text({ address, bytes, json }: { address: string; bytes: number; json: boolean }) {
  const { data, error } = useData(async (s) => new TextDecoder().decode((await bytesOf(address, s)).slice(0, textMost)), [address])
  if (error) return <p class="bad">{error.message}</p>
  if (data === undefined) return <p class="soft">…</p>
  return (
    <>
      {json ? <Parsed text={data} /> : <pre>{data}</pre>}
      {bytes > textMost && <p class="soft">The first {size(textMost)} of {size(bytes)}.</p>}
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
