// What agents do: the sessions, and one of them as a transcript.
import { useRef, useState } from 'preact/hooks'
import { Transcript } from '../activity/transcript'
import { dayOf, initials, program, tokensOf, tokensText, type Session } from '../activity/model'
import { get } from '../api'
import { count, duration, when } from '../format'
import { Hint } from '../parts/hint'
import { Skeleton } from '../parts/skeleton'
import { Views } from '../parts/views'
import { useData } from '../resource'
import { go, route, useFilter } from '../route'
import { usePageKeys } from '../shell/shortcuts'
import { waiting } from '../waiting'

/** The filters that are in the address. */
const filters = ['find', 'agent', 'who', 'server', 'tool', 'outcome', 'span'] as const

/** How many sessions are loaded at first, and each time more are asked for. */
const page = 50

const spans: Record<string, number> = { '1h': 3600, '24h': 86_400, '7d': 604_800 }

export function Activity({ rest }: { rest: string }) {
  const [id, moment] = rest.split('/')
  const [limit, setLimit] = useState(page)
  const query = queryOf(limit)
  const { data, error } = useData((s) => get<{ sessions: Session[] }>(`/api/v1/activity?${query}`, s), [query], ['tool.call_ended', 'approval.', 'job.'])
  const chosen = data?.sessions.find((s) => s.id === id)
  const kept = new URLSearchParams([...route.value.query]).toString()
  const open = (s: Session | undefined) => s && go(`activity/${s.id}${kept && `?${kept}`}`)
  const at = data?.sessions.findIndex((s) => s.id === id) ?? -1
  usePageKeys({ j: () => open(data?.sessions[at + 1]), k: () => open(data?.sessions[Math.max(0, at - 1)]), '/': () => document.getElementById('activity-find')?.focus() })
  return (
    <>
      <Views at="activity" />
      <Filters reading={id !== ''} sessions={data?.sessions ?? []} />
      {error && <p class="bad">{error.message}</p>}
      <div class={`activity ${id ? 'one' : ''}`}>
        <nav aria-label="Sessions" class="sessions">
          {data ? <List sessions={data.sessions} chosen={id} kept={kept} /> : !error && <Skeleton />}
          {data && data.sessions.length >= limit && <button type="button" onClick={() => setLimit(Math.min(200, limit + page))} disabled={limit >= 200}>Show earlier</button>}
        </nav>
        {id ? <Transcript key={id} id={id} moment={moment} known={chosen} back={`#/activity${kept && `?${kept}`}`} /> : data && data.sessions.length > 0 && <p class="soft choose">Choose a session to read what was searched, called and returned.</p>}
      </div>
    </>
  )
}

function queryOf(limit: number): string {
  const query = new URLSearchParams({ limit: String(limit) })
  for (const name of filters) {
    const value = route.value.query.get(name)
    if (!value) continue
    if (name !== 'span') query.set(name, value)
    else if (spans[value]) query.set('since', new Date(Math.floor(Date.now() / 60_000) * 60_000 - spans[value] * 1000).toISOString())
  }
  return query.toString()
}

function Filters({ reading, sessions }: { reading: boolean; sessions: Session[] }) {
  const [find, setFind] = useFilter('find')
  const [tool, setTool] = useFilter('tool')
  const [outcome, setOutcome] = useFilter('outcome')
  const [span, setSpan] = useFilter('span')
  return (
    <div class={`row filters few ${reading ? 'reading' : ''}`}>
      <label for="activity-find" class="hidden">Tool, words, job</label>
      <input id="activity-find" type="search" placeholder="Tool, words, job" value={find} onChange={(e) => setFind(e.currentTarget.value.trim())} />
      <Seen name="agent" label="Agent" all="any agent" values={sessions.filter((s) => s.agent).map(program)} />
      <Seen name="who" label="Person or key" all="anybody" values={sessions.map((s) => s.name || s.who)} />
      <Seen name="server" label="Server" all="any server" values={sessions.flatMap((s) => s.server?.replace(/\+$/, '') || [])} />
      <label for="activity-tool" class="hidden">Tool</label>
      <input id="activity-tool" placeholder="Tool" value={tool} size={12} onChange={(e) => setTool(e.currentTarget.value.trim())} />
      <label for="activity-outcome" class="hidden">Outcome</label>
      <select id="activity-outcome" value={outcome} onChange={(e) => setOutcome(e.currentTarget.value)}>
        <option value="">any outcome</option><option value="ok">all went well</option><option value="failed">something failed</option><option value="denied">something was denied</option><option value="asked">asked for approval</option>
      </select>
      <label for="activity-span" class="hidden">Time</label>
      <select id="activity-span" value={span} onChange={(e) => setSpan(e.currentTarget.value)}><option value="">any time</option><option value="1h">last hour</option><option value="24h">24 hours</option><option value="7d">7 days</option></select>
    </div>
  )
}

/** A filter whose choices are what the list has shown so far. */
function Seen({ name, label, all, values }: { name: (typeof filters)[number]; label: string; all: string; values: string[] }) {
  const [value, set] = useFilter(name)
  const seen = useRef(new Set<string>())
  for (const v of [...values, value]) if (v) seen.current.add(v)
  return (
    <>
      <label for={`activity-${name}`} class="hidden">{label}</label>
      <select id={`activity-${name}`} value={value} onChange={(e) => set(e.currentTarget.value)}><option value="">{all}</option>{[...seen.current].sort().map((v) => <option key={v}>{v}</option>)}</select>
    </>
  )
}

function List({ sessions, chosen, kept }: { sessions: Session[]; chosen?: string; kept: string }) {
  if (sessions.length === 0) return filters.some((f) => route.value.query.get(f)) ? <p class="soft">No session matches. <a href="#/activity">Clear filters</a></p> : <Hint>What your agents search, call and get appears here. Connect one with `luanette install`, and ask it something.</Hint>
  const now = new Date()
  return (
    <ul class="list rows">
      {sessions.map((s, i) => {
        const day = dayOf(s.latest, now)
        return (
          <li key={s.id}>
            {(i === 0 || day !== dayOf(sessions[i - 1].latest, now)) && <h2 class="day">{day}</h2>}
            <a href={`#/activity/${s.id}${kept && `?${kept}`}`} aria-current={s.id === chosen ? 'true' : undefined} class="session">
              <span class="initials" aria-hidden="true">{initials(s)}</span>
              <span class="about"><span class="name oneline">{s.title}</span><span class="soft small oneline"><Doing session={s} /></span></span>
              <span class="soft small">{when(s.latest)}</span>
            </a>
          </li>
        )
      })}
    </ul>
  )
}

/** What a session did, in one line. */
function Doing({ session: s }: { session: Session }) {
  const saved = s.used - s.given
  const waits = s.asked > 0 && waiting.value?.approvals.some((a) => Date.parse(a.created_at) >= Date.parse(s.began) - 1000 && Date.parse(a.created_at) <= Date.parse(s.latest) + 1000)
  return (
    <>
      {program(s)}
      {waits ? <> · <span class="warn">waits for you</span></> : <> · {count(s.calls, 'call')}</>}
      {s.failed > s.denied && <> · <span class="bad">{s.failed - s.denied} failed</span></>}
      {s.denied > 0 && <> · <span class="bad">{s.denied} denied</span></>}
      {saved > 4000 && <> · kept {tokensText(tokensOf(saved))} tokens out</>}
      {s.waited_us > 1e6 && <> · waited {duration(s.waited_us / 1000)}</>}
    </>
  )
}
