// Draws the notes of a Standard MIDI File.

interface Note {
  pitch: number
  start: number
  end: number
  channel: number
}

export function PianoRoll({ bytes }: { bytes: Uint8Array }) {
  const notes = read(bytes)
  if (notes.length === 0) return <p class="soft">This MIDI file contains no notes.</p>
  const max = (of: (n: Note) => number) => notes.reduce((m, n) => Math.max(m, of(n)), 0)
  const end = max((n) => n.end)
  const low = 127 - max((n) => 127 - n.pitch) - 1
  const high = max((n) => n.pitch) + 1
  const height = Math.max(60, (high - low) * 5)
  return (
    <svg class="roll" viewBox={`0 0 800 ${height}`} role="img" aria-label={`piano roll of ${notes.length} notes`}>
      {notes.map((n, i) => (
        <rect key={i} class={`c${n.channel % 6}`} x={(n.start / end) * 800} y={(high - n.pitch) * 5 - 4}
          width={Math.max(2, ((n.end - n.start) / end) * 800 - 1)} height={4} rx={1} />
      ))}
    </svg>
  )
}

/** Reads the notes of all tracks, up to the first error. */
function read(bytes: Uint8Array): Note[] {
  const notes: Note[] = []
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    let at = 8 + view.getUint32(4)
    while (at + 8 <= bytes.length) {
      const size = view.getUint32(at + 4)
      if (view.getUint32(at) === 0x4d54726b) track(bytes.subarray(at + 8, at + 8 + size), notes)
      at += 8 + size
    }
  } catch {
    // show the notes read so far
  }
  return notes
}

function track(bytes: Uint8Array, notes: Note[]): void {
  let at = 0, time = 0, status = 0
  const sounding = new Map<number, number>()
  const varint = () => {
    let value = 0
    for (let i = 0; i < 4; i++) {
      const byte = bytes[at++]
      value = (value << 7) | (byte & 0x7f)
      if (byte < 0x80) break
    }
    return value
  }
  while (at < bytes.length && notes.length < 20_000) {
    time += varint()
    if (bytes[at] & 0x80) status = bytes[at++]
    if (status >= 0xf0) { // meta and system exclusive events: skipped
      if (status === 0xff) at++
      const length = varint() // varint changes `at`, so it must run before the addition
      at += length
    } else {
      const kind = status & 0xf0, channel = status & 0x0f
      const a = bytes[at++]
      const b = kind === 0xc0 || kind === 0xd0 ? 0 : bytes[at++]
      if (kind !== 0x80 && kind !== 0x90) continue
      const key = channel * 128 + a
      const start = sounding.get(key)
      if (start !== undefined) notes.push({ pitch: a, start, end: Math.max(time, start + 1), channel })
      sounding.delete(key)
      if (kind === 0x90 && b > 0) sounding.set(key, time)
    }
  }
}
