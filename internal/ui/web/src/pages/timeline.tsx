import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { call } from '../mcp'
import { type Anchor, beatAt, Playback } from '../playback'
import { Command } from '../parts/command'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { State } from '../parts/state'
import { useData } from '../resource'
import { go } from '../route'
import { Icon } from '../shell/icon'
import { Skeleton } from '../parts/skeleton'

interface Transport {
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

interface View extends Transport {
  regions: Region[]
  markers: Marker[]
}

function tool<T>(name: string, args: Record<string, unknown>, how = 'call_tool', signal?: AbortSignal): Promise<T> {
  return call<T>(how, { name: `hootenanny.${name}`, arguments: args }, signal)
}

/** What the page shows without being asked. */
const read = <T,>(name: string, args: Record<string, unknown>, signal: AbortSignal) => tool<T>(name, args, 'call_tool_read', signal)

const fallback = 'default'

/** A project of the music tools: its regions and markers, and a transport that is heard. */
export function Timeline({ rest }: { rest: string }) {
  const project = rest || fallback
  const { data, error } = useData((s) => read<{ projects: { project: string }[] }>('garden_projects', {}, s), [], ['transport.'])
  if (error && !data) return <section class="panel"><p class="bad">{error.message}</p><Hint>The timeline needs the music tools: start the server with `--music`, or set `enabled = true` in `[music]`.</Hint></section>
  const names = [...new Set([fallback, project, ...(data?.projects ?? []).map((p) => p.project)])].sort()
  const choice = (
    <span class="row">
      <label for="project">Project</label>
      <select id="project" value={project} onChange={(e) => go(`timeline/${encodeURIComponent(e.currentTarget.value)}`)}>
        {names.map((n) => <option key={n}>{n}</option>)}
      </select>
    </span>
  )
  return <Project key={project} name={project} choice={choice} />
}

function Project({ name, choice }: { name: string; choice: ComponentChildren }) {
  const { data, error, reload } = useData((s) => read<View>('garden_query', { project: name }, s), [name], ['transport.'], (e) => e.data.project === name, 3000)
  const playback = useMemo(() => new Playback((message) => notify('bad', message)), [])
  const anchor = useRef<Anchor>({ beat: 0, at: 0, tempo: 120, playing: false })
  const [shown, setShown] = useState<Transport>()
  const mine = useRef(false) // whether this page started the transport
  useEffect(() => () => playback.close(), [])

  const regions = data?.regions ?? []
  const follow = () => playback.follow(anchor.current, regions.flatMap((r) => (r.audio_hash ? [{ id: r.region_id, position: r.position, duration: r.duration, audio: r.audio_hash }] : [])))
  const sync = (s: Transport) => {
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
      sync(await tool<Transport>(what, { project: name, ...more }))
      mine.current = what === 'garden_play' || (mine.current && what === 'garden_seek')
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload()
  }
  if (!data) return error ? <p class="bad">{error.message}</p> : <Skeleton />
  const end = Math.max(16, ...regions.map((r) => r.position + r.duration), ...data.markers.map((m) => m.position + 1))
  const playing = shown?.state === 'playing'
  const finish = () => { if (mine.current) { mine.current = false; void act('garden_stop') } }
  const empty = regions.length + data.markers.length === 0
  return (
    <section aria-label={`project ${name}`}>
      {error && <p class="bad">{error.message}</p>}
      <div class="panel transport">
        <div class="row spread">
          <span class="row player">
            {!playing && <button type="button" class="main" onClick={() => void act('garden_play')}><Icon name="play" />Play</button>}
            {playing && !playback.audible && <button type="button" class="main" onClick={() => void playback.unlock().then(() => { follow(); reload() })}>Listen</button>}
            {playing && <button type="button" onClick={() => void act('garden_pause')}>Pause</button>}
            <button type="button" onClick={() => void act('garden_stop')}><Icon name="stop" />Stop</button>
            <span role="status"><State state={shown?.state ?? data.state} /> <span class="soft">{shown?.tempo_bpm ?? data.tempo_bpm} bpm</span></span>
          </span>
          {choice}
        </div>
        <Position anchor={anchor} playback={playback} end={end} seek={(beat) => void act('garden_seek', { beat })} finish={finish} />
      </div>
      {empty ? <Empty project={name} /> : (
        <>
          <div class="panel"><Drawing regions={regions} markers={data.markers} end={end} anchor={anchor} /></div>
          <div class="panel"><Lists regions={regions} markers={data.markers} /></div>
        </>
      )}
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
      <span class="row"><span class="soft small" aria-hidden="true">level</span><meter ref={meter} min={0} max={1} aria-label="level" /></span>
    </div>
  )
}

const laneHeight = 40, ruler = 26
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
  const cursor = useRef<SVGGElement>(null), box = useRef<HTMLDivElement>(null)
  const width = useWidth(box)
  const scale = Math.max(Math.min(24, maxWidth / end), width / end) // pixels per beat; a short one fills the width
  const drawn = regions.slice(0, maxDrawn)
  const lane = lanes(drawn)
  const height = ruler + laneHeight * Math.max(1, ...lane.map((n) => n + 1)) + (markers.length > 0 ? 20 : 4)
  const step = 4 * Math.ceil(60 / (4 * scale))
  useFrames(() => cursor.current?.setAttribute('transform', `translate(${Math.min(beatAt(anchor.current, performance.now()), end) * scale} 0)`))
  return (
    <div class="scroll" ref={box} tabIndex={0} role="region" aria-label="timeline">
      <svg class="timeline" width={end * scale} height={height} role="img" aria-label={`timeline of ${regions.length} regions and ${markers.length} markers, ${end} beats`}>
        {Array.from({ length: Math.ceil(end / step) }, (_, i) => (
          <g key={i} class="tick"><line x1={i * step * scale} x2={i * step * scale} y1={0} y2={height} /><text x={i * step * scale + 4} y={15}>{i === 0 ? 'beat 0' : i * step}</text></g>
        ))}
        {drawn.map((r, i) => (
          <g key={r.region_id} class={r.audio_hash ? 'region' : 'region silent'}>
            <title>{label(r)}</title>
            <rect x={r.position * scale + 1} y={ruler + 4 + lane[i] * laneHeight} width={Math.max(2, r.duration * scale - 2)} height={laneHeight - 8} rx={6} />
            {r.duration * scale > 40 && <text x={r.position * scale + 10} y={ruler + lane[i] * laneHeight + 24}>{fitted(label(r), r.duration * scale - 20)}</text>}
          </g>
        ))}
        {markers.slice(0, maxDrawn).map((m) => (
          <g key={m.marker_id} class="marker">
            <title>{`${m.marker_type} at beat ${m.position}`}</title>
            <path d={`M${m.position * scale} ${ruler} l-5 -9 h10 z`} /><line x1={m.position * scale} x2={m.position * scale} y1={ruler} y2={height} />
            <text x={m.position * scale + 5} y={height - 5}>{words(m.marker_type)}</text>
          </g>
        ))}
        <g ref={cursor} class="cursor"><line x1={0} x2={0} y1={0} y2={height} /><path d="M-5 0h10l-5 8z" /></g>
      </svg>
    </div>
  )
}

/** The width of an element, as it is now. */
function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(0, (box.current?.clientWidth ?? 0) - 2)) // without the border of the drawing
    measure()
    const resized = new ResizeObserver(measure)
    resized.observe(box.current!)
    return () => resized.disconnect()
  }, [])
  return width
}

/** As much of a text as fits into some pixels. */
function fitted(text: string, width: number): string {
  const most = Math.floor(width / 7)
  return text.length <= most ? text : most > 2 ? `${text.slice(0, most - 1)}…` : ''
}

const words = (name: string) => name.replaceAll('_', ' ')

/** What to do with a project that has nothing yet. */
function Empty({ project }: { project: string }) {
  const example = `mcp.hootenanny.garden_create_region{project = "${project}", position = 0, duration = 16, behavior_type = "latent", name = "intro"}`
  return (
    <section class="panel" aria-label="Empty project">
      <h2>Nothing on this timeline yet</h2>
      <p>Agents and scripts place regions (sounds, or places for sounds to come) and markers on it, beat by beat. What they place appears here at once.</p>
      <ul>
        <li>Place one by hand: <a href="#/tools/hootenanny.garden_create_region">garden_create_region</a>, <a href="#/tools/hootenanny.garden_add_marker">garden_add_marker</a></li>
        <li>Or run this in the <a href="#/playground">playground</a>:</li>
      </ul>
      <Command text={example} />
    </section>
  )
}

function label(r: Region): string {
  return r.name || r.content_id?.slice(0, 21) || r.behavior_type
}

const maxRows = 200

/** The same as text. */
function Lists({ regions, markers }: { regions: Region[]; markers: Marker[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="regions and markers">
      <table class="stack" aria-label="Regions and markers">
        <thead><tr><th>What</th><th>Kind</th><th class="num">Beat</th><th class="num">Length</th><th>Sound</th></tr></thead>
        <tbody>
          {regions.slice(0, maxRows).map((r) => (
            <tr key={r.region_id}><td class="name breaks">{label(r)}</td><td><span class="kind">{words(r.behavior_type)}</span></td><td class="num" data-label="beat">{r.position}</td><td class="num" data-label="length">{r.duration}</td>
              <td>{r.audio_hash ? <span class="good">ready</span> : <span class="soft">{r.content_id ? 'none: render it with convert_midi_to_wav' : 'none yet'}</span>}</td></tr>
          ))}
          {markers.slice(0, maxRows).map((m) => <tr key={m.marker_id}><td class="name breaks">{words(m.marker_type)}</td><td><span class="kind">marker</span></td><td class="num" data-label="beat">{m.position}</td><td /><td /></tr>)}
        </tbody>
      </table>
      {Math.max(regions.length, markers.length) > maxRows && <p class="soft">The first {maxRows} of each are listed.</p>}
    </div>
  )
}
