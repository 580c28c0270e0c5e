// Draws the notes of a Standard MIDI File and plays them.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { duration } from '../format'
import { MidiPlayer, readNotes } from '../midi'
import { Icon } from '../shell/icon'

export function PianoRoll({ bytes }: { bytes: Uint8Array }) {
  const notes = useMemo(() => readNotes(bytes), [bytes])
  const player = useRef<MidiPlayer>()
  const cursor = useRef<SVGLineElement>(null)
  const [playing, setPlaying] = useState(false)
  const max = (of: (n: (typeof notes)[number]) => number) => notes.reduce((m, n) => Math.max(m, of(n)), 0)
  const end = max((n) => n.end)
  useEffect(() => {
    player.current = new MidiPlayer(notes, () => setPlaying(false))
    return () => player.current?.stop()
  }, [notes])
  useEffect(() => {
    if (!playing) return
    let frame = 0
    const move = () => {
      cursor.current?.setAttribute('transform', `translate(${Math.min(800, (player.current!.position / end) * 800)})`)
      frame = requestAnimationFrame(move)
    }
    move()
    return () => cancelAnimationFrame(frame)
  }, [playing])
  if (notes.length === 0) return <p class="soft">This MIDI file contains no notes.</p>
  const low = 127 - max((n) => 127 - n.pitch) - 1
  const high = max((n) => n.pitch) + 1
  const height = Math.max(60, (high - low) * 5)
  const toggle = () => {
    if (playing) player.current!.stop()
    else player.current!.play()
    setPlaying(!playing)
  }
  return (
    <>
      <svg class="roll" viewBox={`0 0 800 ${height}`} role="img" aria-label={`piano roll of ${notes.length} notes`}>
        {notes.map((n, i) => (
          <rect key={i} class={`c${n.channel % 6}`} x={(n.start / end) * 800} y={(high - n.pitch) * 5 - 4}
            width={Math.max(2, ((n.end - n.start) / end) * 800 - 1)} height={4} rx={1} />
        ))}
        {playing && <line ref={cursor} class="cursor" x1={0} x2={0} y1={0} y2={height} />}
      </svg>
      <div class="row player"><button type="button" aria-pressed={playing} onClick={toggle}><Icon name={playing ? 'stop' : 'play'} />{playing ? 'Stop' : 'Play'}</button><span class="soft small">{duration(end * 1000)}</span></div>
    </>
  )
}
