// Plays the sounds of a timeline's regions with Web Audio, along the server's transport.
import { errorOf, request } from './api'

/** A sound on the timeline. Positions and lengths are in beats. */
export interface Clip {
  id: string
  position: number
  duration: number
  audio: string // hash of its content
}

/** Where the transport was at a moment, and how it goes on. */
export interface Anchor {
  beat: number
  at: number // milliseconds, as performance.now()
  tempo: number
  playing: boolean
}

/** The position in beats at a moment. */
export function beatAt(a: Anchor, now: number): number {
  return a.playing ? a.beat + ((now - a.at) / 60_000) * a.tempo : a.beat
}

/** What of a clip sounds from a beat on, in seconds; undefined if it is over. */
export function excerpt(clip: Clip, beat: number, tempo: number): { delay: number; offset: number; length: number } | undefined {
  const seconds = (beats: number) => (beats * 60) / tempo
  const begun = Math.max(0, beat - clip.position)
  if (begun >= clip.duration) return undefined
  return { delay: seconds(Math.max(0, clip.position - beat)), offset: seconds(begun), length: seconds(clip.duration - begun) }
}

const ahead = 10 // seconds before its start at which a sound is loaded
const maxBuffers = 32 // decoded sounds in memory

export class Playback {
  private context?: AudioContext
  private meter?: AnalyserNode
  private samples = new Float32Array(1024)
  private buffers = new Map<string, Promise<AudioBuffer>>()
  private sources = new Map<string, AudioBufferSourceNode | undefined>() // by clip; undefined while it loads
  private timer?: number
  private run = 0 // counts the calls of follow and silence: sounds that load for an earlier one are not started

  constructor(private readonly failed: (message: string) => void) {}

  /** Whether sounds are heard. Browsers allow that only after a click or a key. */
  get audible(): boolean {
    return this.context?.state === 'running'
  }

  /** Must be called while a click or key is handled. */
  async unlock(): Promise<void> {
    if (!this.context) {
      this.context = new AudioContext()
      this.meter = this.context.createAnalyser()
      this.meter.connect(this.context.destination)
    }
    await this.context.resume()
  }

  /** Plays the clips along the transport, until the next call or silence. */
  follow(anchor: Anchor, clips: Clip[]): void {
    this.silence()
    if (!anchor.playing || !this.audible) return
    const run = this.run
    const look = () => {
      const beat = beatAt(anchor, performance.now())
      for (const clip of clips) {
        const next = excerpt(clip, beat, anchor.tempo)
        if (next && next.delay < ahead && !this.sources.has(clip.id)) void this.start(clip, anchor, run)
      }
    }
    look()
    this.timer = window.setInterval(look, 1000)
  }

  private async start(clip: Clip, anchor: Anchor, run: number): Promise<void> {
    this.sources.set(clip.id, undefined)
    try {
      const buffer = await this.load(clip.audio)
      const part = excerpt(clip, beatAt(anchor, performance.now()), anchor.tempo)
      if (this.run !== run || !part || !this.context || part.offset >= buffer.duration) return
      const source = new AudioBufferSourceNode(this.context, { buffer })
      source.connect(this.meter!)
      source.start(this.context.currentTime + part.delay, part.offset, part.length)
      this.sources.set(clip.id, source)
    } catch (e) {
      this.failed(`cannot play ${clip.id}: ${(e as Error).message}`)
    }
  }

  private load(hash: string): Promise<AudioBuffer> {
    let loading = this.buffers.get(hash)
    if (!loading) {
      loading = this.fetch(hash)
      loading.catch(() => this.buffers.delete(hash))
      this.buffers.set(hash, loading)
      if (this.buffers.size > maxBuffers) this.buffers.delete(this.buffers.keys().next().value!)
    }
    return loading
  }

  private async fetch(hash: string): Promise<AudioBuffer> {
    const response = await request(`/cas/${encodeURIComponent(hash)}`)
    if (!response.ok) throw await errorOf(response)
    return this.context!.decodeAudioData(await response.arrayBuffer())
  }

  silence(): void {
    this.run++
    window.clearInterval(this.timer)
    for (const source of this.sources.values()) source?.stop()
    this.sources.clear()
  }

  /** The peak of what is heard now, from 0 to 1. */
  level(): number {
    if (!this.meter) return 0
    this.meter.getFloatTimeDomainData(this.samples)
    return Math.min(1, this.samples.reduce((peak, s) => Math.max(peak, Math.abs(s)), 0))
  }

  close(): void {
    this.silence()
    void this.context?.close()
    this.context = undefined
  }
}
