import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { call } from '../mcp'
import { type Anchor, beatAt, Playback } from '../playback'
import { useData } from '../resource'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'

interface State {
  project: string
  state: 'playing' | 'paused' | 'stopped'
  position_beats: number
  tempo_bpm: number
}

interface Region {
  region_id: string
  position: number
  duration: number
  behavior_type: string
  content_id?: string
  name?: string
  audio_hash?: string
}

interface Marker {
  marker_id: string
  position: number
  marker_type: string
}

interface View extends State {
  regions: Region[]
  markers: Marker[]
}

function tool<T>(name: string, args: Record<string, unknown>, signal?: AbortSignal): Promise<T> {
  return call<T>('call_tool', { name: `hootenanny.${name}`, arguments: args }, signal)
}

const fallback = 'default'

/** A project of the music tools: its regions and markers, and a transport that is heard. */
export function Timeline({ rest }: { rest: string }) {
  const project = rest || fallback
  const { data, error } = useData((s) => tool<{ projects: { project: string }[] }>('garden_projects', {}, s), [], ['transport.'])
  if (error && !data) return <><p class="bad">{error.message}</p><Hint>The timeline needs the music tools: start the server with `--music`.</Hint></>
  const names = [...new Set([fallback, project, ...(data?.projects ?? []).map((p) => p.project)])].sort()
  return (
    <>
      <div class="row filters">
        <label for="project">Project</label>
        <select id="project" value={project} onChange={(e) => (location.hash = `#/timeline/${encodeURIComponent(e.currentTarget.value)}`)}>
          {names.map((n) => <option key={n}>{n}</option>)}
        </select>
      </div>
      <Project key={project} name={project} />
    </>
  )
}

function Project({ name }: { name: string }) {
  const { data, error, reload } = useData((s) => tool<View>('garden_query', { project: name }, s), [name], ['transport.'], (e) => e.data.project === name, 3000)
  const playback = useMemo(() => new Playback((message) => notify('bad', message)), [])
  const anchor = useRef<Anchor>({ beat: 0, at: 0, tempo: 120, playing: false })
  const [shown, setShown] = useState<State>()
  const mine = useRef(false) // whether this page started the transport
  useEffect(() => () => playback.close(), [])

  const regions = data?.regions ?? []
  const follow = () => playback.follow(anchor.current, regions.flatMap((r) => (r.audio_hash ? [{ id: r.region_id, position: r.position, duration: r.duration, audio: r.audio_hash }] : [])))
  const sync = (s: State) => {
    anchor.current = { beat: s.position_beats, at: performance.now(), tempo: s.tempo_bpm, playing: s.state === 'playing' }
    setShown(s)
    follow()
  }
  const layout = JSON.stringify(regions)
  useEffect(() => {
    if (!data) return
    const a = anchor.current
    const same = shown?.state === data.state && shown.tempo_bpm === data.tempo_bpm && Math.abs(beatAt(a, performance.now()) - data.position_beats) < 0.5
    if (!same) sync(data)
  }, [data])
  useEffect(follow, [layout])

  const act = async (what: string, more: Record<string, unknown> = {}) => {
    try {
      await playback.unlock() // while the click is handled
      sync(await tool<State>(what, { project: name, ...more }))
      mine.current = what === 'garden_play' || (mine.current && what === 'garden_seek')
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload()
  }
  if (!data) return error ? <p class="bad">{error.message}</p> : <p class="soft">…</p>
  const end = Math.max(16, ...regions.map((r) => r.position + r.duration), ...data.markers.map((m) => m.position + 1))
  const playing = shown?.state === 'playing'
  const finish = () => { if (mine.current) { mine.current = false; void act('garden_stop') } }
  return (
    <section aria-label={`project ${name}`}>
      {error && <p class="bad">{error.message}</p>}
      <div class="row actions">
        {!playing && <button type="button" onClick={() => void act('garden_play')}>Play</button>}
        {playing && !playback.audible && <button type="button" onClick={() => void playback.unlock().then(() => { follow(); reload() })}>Listen</button>}
        {playing && <button type="button" onClick={() => void act('garden_pause')}>Pause</button>}
        <button type="button" onClick={() => void act('garden_stop')}>Stop</button>
        <span class="soft" role="status">{shown?.state ?? data.state}, {shown?.tempo_bpm ?? data.tempo_bpm} bpm</span>
      </div>
      <Position anchor={anchor} playback={playback} end={end} seek={(beat) => void act('garden_seek', { beat })} finish={finish} />
      <Drawing regions={regions} markers={data.markers} end={end} anchor={anchor} />
      <Lists regions={regions} markers={data.markers} />
    </section>
  )
}

/** Calls f for each frame while the component is shown. */
function useFrames(f: () => void): void {
  const latest = useRef(f)
  latest.current = f
  useEffect(() => {
    let next = requestAnimationFrame(function frame() {
      latest.current()
      next = requestAnimationFrame(frame)
    })
    return () => cancelAnimationFrame(next)
  }, [])
}

/** The position as text and slider, and the level of what is heard. */
function Position({ anchor, playback, end, seek, finish }: { anchor: { current: Anchor }; playback: Playback; end: number; seek: (beat: number) => void; finish: () => void }) {
  const text = useRef<HTMLOutputElement>(null), slider = useRef<HTMLInputElement>(null), meter = useRef<HTMLMeterElement>(null)
  const dragging = useRef(false)
  useFrames(() => {
    const a = anchor.current, beat = beatAt(a, performance.now())
    const said = `beat ${beat.toFixed(1)}, ${((beat * 60) / a.tempo).toFixed(1)} s`
    if (text.current && text.current.textContent !== said) text.current.textContent = said
    if (slider.current && !dragging.current) slider.current.value = String(Math.min(beat, end))
    if (meter.current) meter.current.value = playback.level()
    if (a.playing && beat > end + 1) finish()
  })
  return (
    <div class="row">
      <input class="position" ref={slider} type="range" min={0} max={end} step={0.25} aria-label="position in beats"
        onInput={() => (dragging.current = true)} onChange={(e) => { dragging.current = false; seek(Number(e.currentTarget.value)) }} />
      <output class="mono" ref={text} aria-live="off" aria-label="position" />
      <meter ref={meter} min={0} max={1} aria-label="level" />
    </div>
  )
}

const laneHeight = 34, ruler = 22
const maxWidth = 24_000 // pixels: longer timelines are drawn smaller
const maxDrawn = 2000 // regions, and markers

/** The lane of each region, so that none covers another. */
export function lanes(regions: { position: number; duration: number }[]): number[] {
  const ends: number[] = []
  return regions.map((r) => {
    let lane = ends.findIndex((e) => e <= r.position)
    if (lane < 0) lane = ends.length
    ends[lane] = r.position + r.duration
    return lane
  })
}

/** Regions, markers and the cursor. */
function Drawing({ regions, markers, end, anchor }: { regions: Region[]; markers: Marker[]; end: number; anchor: { current: Anchor } }) {
  const cursor = useRef<SVGLineElement>(null)
  const scale = Math.min(24, maxWidth / end) // pixels per beat
  const drawn = regions.slice(0, maxDrawn)
  const lane = lanes(drawn)
  const height = ruler + laneHeight * Math.max(1, ...lane.map((n) => n + 1))
  const step = 4 * Math.ceil(60 / (4 * scale))
  useFrames(() => cursor.current?.setAttribute('transform', `translate(${Math.min(beatAt(anchor.current, performance.now()), end) * scale} 0)`))
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="timeline">
      <svg class="timeline" width={end * scale} height={height} role="img" aria-label={`timeline of ${regions.length} regions and ${markers.length} markers, ${end} beats`}>
        {Array.from({ length: Math.ceil(end / step) }, (_, i) => (
          <g key={i} class="tick"><line x1={i * step * scale} x2={i * step * scale} y1={0} y2={height} /><text x={i * step * scale + 3} y={14}>{i * step}</text></g>
        ))}
        {drawn.map((r, i) => (
          <g key={r.region_id} class={r.audio_hash ? 'region' : 'region silent'}>
            <title>{label(r)}</title>
            <rect x={r.position * scale} y={ruler + lane[i] * laneHeight} width={Math.max(2, r.duration * scale - 1)} height={laneHeight - 4} rx={4} />
            {r.duration * scale > 40 && <text x={r.position * scale + 6} y={ruler + lane[i] * laneHeight + 19}>{label(r).slice(0, Math.floor((r.duration * scale) / 8))}</text>}
          </g>
        ))}
        {markers.slice(0, maxDrawn).map((m) => (
          <g key={m.marker_id} class="marker">
            <title>{`${m.marker_type} at beat ${m.position}`}</title>
            <path d={`M${m.position * scale} ${ruler} l-5 -9 h10 z`} /><line x1={m.position * scale} x2={m.position * scale} y1={ruler} y2={height} />
          </g>
        ))}
        <line ref={cursor} class="cursor" x1={0} x2={0} y1={0} y2={height} />
      </svg>
    </div>
  )
}

function label(r: Region): string {
  return r.name || r.content_id?.slice(0, 21) || r.behavior_type
}

const maxRows = 200

/** The same as text. */
function Lists({ regions, markers }: { regions: Region[]; markers: Marker[] }) {
  if (regions.length + markers.length === 0) return <Hint>This project is empty. The tools garden_create_region and garden_add_marker fill it.</Hint>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="regions and markers">
      <table>
        <thead><tr><th>Beat</th><th>Length</th><th>What</th><th>Sound</th></tr></thead>
        <tbody>
          {regions.slice(0, maxRows).map((r) => (
            <tr key={r.region_id}><td>{r.position}</td><td>{r.duration}</td><td>{label(r)}</td>
              <td>{r.audio_hash ? 'yes' : r.content_id ? 'none: render it with convert_midi_to_wav' : r.behavior_type}</td></tr>
          ))}
          {markers.slice(0, maxRows).map((m) => <tr key={m.marker_id}><td>{m.position}</td><td>0</td><td>{m.marker_type}</td><td>marker</td></tr>)}
        </tbody>
      </table>
      {Math.max(regions.length, markers.length) > maxRows && <p class="soft">The first {maxRows} of each are listed.</p>}
    </div>
  )
}
