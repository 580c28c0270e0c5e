// A sound with its waveform. A click in it plays from there.
import { useRef, useState } from 'preact/hooks'
import { errorOf, request, urlOf } from '../api'
import { useData } from '../resource'

const bars = 300
const maxBytes = 32 * 1024 * 1024

export function Sound({ address, bytes, name }: { address: string; bytes: number; name: string }) {
  const audio = useRef<HTMLAudioElement>(null)
  const [at, setAt] = useState(0)
  const { data: peaks } = useData((s) => (bytes > maxBytes ? Promise.resolve(undefined) : peaksOf(address, s)), [address]) // a format that cannot be decoded may still play
  const seek = (e: MouseEvent) => {
    const box = (e.currentTarget as Element).getBoundingClientRect()
    if (audio.current && Number.isFinite(audio.current.duration)) audio.current.currentTime = ((e.clientX - box.left) / box.width) * audio.current.duration
  }
  return (
    <figure class="sound">
      {peaks && (
        <svg class="wave" viewBox={`0 -50 ${bars} 100`} preserveAspectRatio="none" role="img" aria-label={`waveform of ${name}`} onClick={seek}>
          {peaks.map((p, i) => <rect key={i} class={i / bars < at ? 'played' : ''} x={i} y={-p * 48 - 0.5} width={0.7} height={p * 96 + 1} />)}
        </svg>
      )}
      <audio ref={audio} controls src={urlOf(address)} aria-label={name} onTimeUpdate={(e) => setAt(e.currentTarget.currentTime / (e.currentTarget.duration || 1))} />
    </figure>
  )
}

/** The loudest sample of each part of a sound, from 0 to 1. */
export async function peaksOf(address: string, signal: AbortSignal, parts = bars): Promise<number[]> {
  const response = await request(address, { signal })
  if (!response.ok) throw await errorOf(response)
  const sound = await new OfflineAudioContext(1, 1, 44_100).decodeAudioData(await response.arrayBuffer())
  const samples = sound.getChannelData(0)
  const each = Math.max(1, Math.floor(samples.length / parts))
  return Array.from({ length: parts }, (_, i) => {
    let peak = 0
    for (let n = i * each; n < Math.min((i + 1) * each, samples.length); n++) peak = Math.max(peak, Math.abs(samples[n]))
    return Math.min(1, peak)
  })
}
