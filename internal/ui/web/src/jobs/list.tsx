// All jobs, filtered by the address.
import { useRef, useState } from 'preact/hooks'
import { when } from '../format'
import { call } from '../mcp'
import { Hint } from '../parts/hint'
import { Schedules } from '../parts/schedules'
import { SharedMark, Whose } from '../parts/share'
import { State, stateWord } from '../parts/state'
import { Table, type Column } from '../parts/table'
import { Views } from '../parts/views'
import { useData } from '../resource'
import { useFilter } from '../route'
import { useWhose } from '../shares'
import { active, Cancel, Progress, Retry, titleOf, took, type Job } from './job'

const states = ['pending', 'running', 'waiting', 'complete', 'failed', 'cancelled']

/** How far back the list goes, in seconds. */
const spans: Record<string, [text: string, seconds: number]> = { '': ['any time', 0], '15m': ['last 15 minutes', 900], '1h': ['last hour', 3600], '24h': ['last 24 hours', 86_400], '7d': ['last 7 days', 604_800], '30d': ['last 30 days', 2_592_000] }

/** How many jobs are loaded first, and at most. */
const first = 200, most = 1000

export function AllJobs() {
  const [status, setStatus] = useFilter('state')
  const [script, setScript] = useFilter('script')
  const [tag, setTag] = useFilter('tag')
  const [span, setSpan] = useFilter('time')
  const [find, setFind] = useFilter('find')
  const whose = useWhose()
  const [limit, setLimit] = useState(first)
  const [marked, setMarked] = useState<string[]>([])
  const load = (s: AbortSignal) => call<{ jobs: Job[]; total: number }>('job_list', {
    limit, ...(status && { status }), ...(script && { script }), ...(tag && { tag }), ...(spans[span]?.[1] && { since: Math.floor(Date.now() / 1000 - spans[span][1]) }),
  }, s)
  const { data, error } = useData(load, [status, script, tag, span, limit], ['job.', 'share.'])
  const stats = useData((s) => call<Record<string, number>>('job_stats', {}, s), [], ['job.'], (e) => e.type !== 'job.progress')
  const shown = data?.jobs.filter((j) => whose.isShown(j) && [titleOf(j), j.job_id, j.creator ?? '', ...j.tags].some((text) => text.toLowerCase().includes(find.toLowerCase())))
  const scripts = useSeen((data?.jobs ?? []).flatMap((j) => j.name ?? []), script)
  const tags = useSeen((data?.jobs ?? []).flatMap((j) => tagsOf(j)), tag)
  const filtered = [status, script, tag, span, find, whose.whose].some(Boolean)
  const mark = (id: string) => setMarked((m) => (m.includes(id) ? m.filter((x) => x !== id) : [...m.slice(-1), id]))
  return (
    <>
      <Views at="jobs" />
      <div class="segments" role="group" aria-label="State">
        {['', ...states].map((s) => <button key={s} type="button" aria-pressed={status === s} onClick={() => setStatus(s)}>{s ? stateWord(s) : 'all'} <span class="count">{stats.data?.[s || 'total']}</span></button>)}
      </div>
      <div class="row filters">
        <label for="job-words" class="hidden">Find a job</label>
        <input id="job-words" type="search" size={24} placeholder="Name, id, tag or creator" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <Choice id="job-script" label="Script" value={script} all="all scripts" options={scripts} change={setScript} />
        <Choice id="job-tag" label="Tag" value={tag} all="all tags" options={tags} change={setTag} />
        <label for="job-time" class="hidden">Time</label>
        <select id="job-time" value={span} onChange={(e) => setSpan(e.currentTarget.value)}>{Object.entries(spans).map(([key, [text]]) => <option key={key} value={key}>{text}</option>)}</select>
        <Whose {...whose} />
        {marked.length === 2 ? <a class="button" href={`#/jobs/${marked[0]}/${marked[1]}`}>Compare both</a> : <a class="button" href="#/scripts">Start a script</a>}
        <span class="soft" role="status">{shown && data && `${shown.length} of ${data.total}`}</span>
      </div>
      <Schedules />
      {error && <p class="bad">{error.message}</p>}
      {shown?.length === 0 && <Hint>{filtered ? 'No job matches the filters.' : 'No jobs yet. Start a stored script from its page, or with `luanette job start HASH`.'}</Hint>}
      {shown && shown.length > 0 && <div><Table label="Jobs" rows={shown} columns={columns(marked, mark, setTag)} id={(j) => j.job_id} /></div>}
      {data && data.total > data.jobs.length && limit < most && <button type="button" onClick={() => setLimit(most)}>Show more of {data.total}</button>}
    </>
  )
}

/** The values that the list has shown so far, so that a filter does not remove its alternatives. */
function useSeen(values: string[], chosen: string): string[] {
  const seen = useRef(new Set<string>())
  for (const v of values) seen.current.add(v)
  if (chosen) seen.current.add(chosen)
  return [...seen.current].sort()
}

function Choice({ id, label, value, all, options, change }: { id: string; label: string; value: string; all: string; options: string[]; change: (v: string) => void }) {
  return (
    <>
      <label for={id} class="hidden">{label}</label>
      <select id={id} value={value} onChange={(e) => change(e.currentTarget.value)}><option value="">{all}</option>{options.map((o) => <option key={o} value={o}>{o}</option>)}</select>
    </>
  )
}

/** The tags that people gave. */
const tagsOf = (j: Job) => j.tags.filter((t) => !t.startsWith('undo:'))

function columns(marked: string[], mark: (id: string) => void, setTag: (tag: string) => void): Column<Job>[] {
  return [
    { name: '(Compare)', cell: (j) => <input type="checkbox" aria-label={`compare ${j.job_id}`} title="Mark two jobs to compare them" checked={marked.includes(j.job_id)} onChange={() => mark(j.job_id)} /> },
    {
      name: 'Job', value: titleOf, cell: (j) => (
        <><a class="name" href={`#/jobs/${j.job_id}`} title={j.job_id}>{titleOf(j)}</a> <span class="soft">{j.schedule_id ? 'by schedule' : j.creator}</span> <SharedMark kind="job" of={j} />{tagsOf(j).map((t) => <button key={t} type="button" class="tag at soft" title={`only jobs with the tag ${t}`} onClick={() => setTag(t)}>{t}</button>)}</>
      ),
    },
    { name: 'Status', value: (j) => states.indexOf(j.status), cell: (j) => <State state={j.status} /> },
    { name: 'Progress', cell: (j) => <Progress job={j} />, class: 'wide' },
    { name: 'Started', value: (j) => j.started_at ?? j.created_at, number: true, cell: (j) => (j.started_at ? when(j.started_at * 1000) : '') },
    { name: 'Took', value: (j) => (j.started_at ? (j.completed_at ?? Date.now() / 1000) - j.started_at : 0), number: true, cell: took },
    { name: '(Actions)', cell: (j) => (active(j) ? <Cancel job={j} /> : j.status !== 'complete' && <Retry job={j} />), class: 'num' },
  ]
}
