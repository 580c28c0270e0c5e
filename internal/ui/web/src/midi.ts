// Reads the notes of a Standard MIDI File, and plays them with Web Audio.

export interface Note {
  pitch: number
  start: number // seconds
  end: number
  channel: number
  velocity: number
}

interface Raw extends Note {
  from: number // ticks
  to: number
}

interface Tempo {
  tick: number
  beat: number // microseconds of a quarter note
}

const mostNotes = 20_000

/** The notes of all tracks, up to the first error. */
export function readNotes(bytes: Uint8Array): Note[] {
  const notes: Raw[] = []
  const tempos: Tempo[] = [{ tick: 0, beat: 500_000 }]
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let division = 480
  try {
    division = view.getUint16(12)
    let at = 8 + view.getUint32(4)
    while (at + 8 <= bytes.length) {
      const size = view.getUint32(at + 4)
      if (view.getUint32(at) === 0x4d54726b) track(bytes.subarray(at + 8, at + 8 + size), notes, tempos)
      at += 8 + size
    }
  } catch {
    // the notes read so far
  }
  const seconds = clockOf(division, tempos.sort((a, b) => a.tick - b.tick))
  return notes.map((n) => ({ ...n, start: seconds(n.from), end: seconds(n.to) }))
}

/** The time of a tick in seconds. */
function clockOf(division: number, tempos: Tempo[]): (tick: number) => number {
  if (division & 0x8000) { // frames per second and ticks per frame
    const perSecond = (256 - (division >> 8)) * (division & 0xff)
    return (tick) => tick / perSecond
  }
  const begins: number[] = []
  let at = 0
  tempos.forEach((t, i) => {
    if (i > 0) at += ((t.tick - tempos[i - 1].tick) * tempos[i - 1].beat) / division / 1e6
    begins.push(at)
  })
  return (tick) => {
    let i = tempos.length - 1
    while (i > 0 && tempos[i].tick > tick) i--
    return begins[i] + ((tick - tempos[i].tick) * tempos[i].beat) / division / 1e6
  }
}

function track(bytes: Uint8Array, notes: Raw[], tempos: Tempo[]): void {
  let at = 0, time = 0, status = 0
  const sounding = new Map<number, { from: number; velocity: number }>()
  const varint = () => {
    let value = 0
    for (let i = 0; i < 4; i++) {
      const byte = bytes[at++]
      value = (value << 7) | (byte & 0x7f)
      if (byte < 0x80) break
    }
    return value
  }
  while (at < bytes.length && notes.length < mostNotes) {
    time += varint()
    if (bytes[at] & 0x80) status = bytes[at++]
    if (status >= 0xf0) { // meta and system exclusive events: skipped, except tempo
      const kind = status === 0xff ? bytes[at++] : 0
      const length = varint() // varint changes `at`, so it must run before the addition
      if (kind === 0x51 && length === 3) tempos.push({ tick: time, beat: (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2] })
      at += length
      continue
    }
    const kind = status & 0xf0, channel = status & 0x0f
    const a = bytes[at++]
    const b = kind === 0xc0 || kind === 0xd0 ? 0 : bytes[at++]
    if (kind !== 0x80 && kind !== 0x90) continue
    const key = channel * 128 + a
    const begun = sounding.get(key)
    if (begun) notes.push({ pitch: a, from: begun.from, to: Math.max(time, begun.from + 1), start: 0, end: 0, channel, velocity: begun.velocity })
    sounding.delete(key)
    if (kind === 0x90 && b > 0) sounding.set(key, { from: time, velocity: b })
  }
}

const ahead = 0.5 // seconds before its start at which a note is scheduled

/** Plays notes with a plain synthesizer: one oscillator each, noise for percussion. */
export class MidiPlayer {
  private context?: AudioContext
  private began = 0
  private timer?: number
  private next = 0
  private readonly notes: Note[]

  constructor(notes: Note[], private readonly ended: () => void) {
    this.notes = [...notes].sort((a, b) => a.start - b.start)
  }

  /** Must be called while a click or key is handled. */
  play(): void {
    this.stop()
    this.context = new AudioContext()
    this.began = this.context.currentTime + 0.1
    this.next = 0
    this.timer = window.setInterval(() => this.schedule(), 100)
    this.schedule()
  }

  stop(): void {
    window.clearInterval(this.timer)
    void this.context?.close()
    this.context = undefined
  }

  /** Seconds since the beginning. */
  get position(): number {
    return this.context ? Math.max(0, this.context.currentTime - this.began) : 0
  }

  private schedule(): void {
    const now = this.position
    for (; this.next < this.notes.length && this.notes[this.next].start < now + ahead; this.next++) this.sound(this.notes[this.next])
    const last = this.notes.reduce((m, n) => Math.max(m, n.end), 0)
    if (now > last + 0.3) {
      this.stop()
      this.ended()
    }
  }

  private sound(n: Note): void {
    const context = this.context!
    const from = this.began + n.start, to = Math.max(from + 0.05, this.began + n.end)
    const gain = context.createGain()
    const loud = (n.velocity / 127) * 0.18
    gain.gain.setValueAtTime(0, from)
    gain.gain.linearRampToValueAtTime(loud, from + 0.01)
    gain.gain.setTargetAtTime(loud * 0.6, from + 0.02, 0.15)
    gain.gain.setTargetAtTime(0, to, 0.05)
    gain.connect(context.destination)
    const source = n.channel === 9 ? noise(context) : tone(context, n.pitch)
    source.connect(gain)
    source.start(from)
    source.stop(n.channel === 9 ? from + 0.12 : to + 0.3)
  }
}

function tone(context: AudioContext, pitch: number): AudioScheduledSourceNode {
  return new OscillatorNode(context, { type: 'triangle', frequency: 440 * 2 ** ((pitch - 69) / 12) })
}

function noise(context: AudioContext): AudioScheduledSourceNode {
  const buffer = context.createBuffer(1, Math.floor(context.sampleRate * 0.12), context.sampleRate)
  const samples = buffer.getChannelData(0)
  for (let i = 0; i < samples.length; i++) samples[i] = (Math.random() * 2 - 1) * (1 - i / samples.length)
  return new AudioBufferSourceNode(context, { buffer })
}
