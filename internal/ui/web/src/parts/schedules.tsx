// The schedules that start jobs.
import { useState } from 'preact/hooks'
import { inWords } from '../cron'
import { when } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { isPermitted, type Owned } from '../shares'
import { attempt } from '../upstream'
import { Hint } from './hint'
import { deferred } from './notices'
import { Until } from './now'
import { SharedMark, ShareButton } from './share'
import { State } from './state'

interface Schedule extends Owned {
  schedule_id: string
  schedule: string
  timezone?: string
  name?: string
  script_hash?: string
  paused: boolean
  next_run?: number
  last_run?: number
  last_job_id?: string
  started: number
  skipped?: number
}

/** All schedules; as a part of a page only if there are any. */
export function Schedules({ whole = false }: { whole?: boolean }) {
  const { data, reload } = useData((s) => call<{ schedules: Schedule[] }>('schedule_list', {}, s), [], ['job.', 'schedule.', 'share.'], (e) => e.type !== 'job.progress')
  const [gone, setGone] = useState<string[]>([])
  if (!data || data.schedules.length === 0) return data && whole ? <Hint>Scripts that run by themselves appear here. Open a script and choose when it runs.</Hint> : null
  const act = (tool: string, s: Schedule, done: string) => void attempt(() => call(tool, { schedule_id: s.schedule_id }), done).then(reload)
  const remove = async (s: Schedule) => { // until it is gone, it starts nothing
    if (!(s.paused || await attempt(() => call('schedule_pause', { schedule_id: s.schedule_id })))) return
    setGone((all) => [...all, s.schedule_id])
    deferred(`The schedule of ${s.name || 'the script'} was removed`, () => void attempt(() => call('schedule_remove', { schedule_id: s.schedule_id })).then(reload), () => {
      setGone((all) => all.filter((id) => id !== s.schedule_id))
      if (!s.paused) act('schedule_resume', s, 'schedule resumed')
    })
  }
  return (
    <section class="panel" aria-label="Schedules">
      <h2>Schedules</h2>
      <table class="stack" aria-label="Schedules">
        <thead><tr><th>Script</th><th>When</th><th>Next</th><th>Last</th><th class="num">Started</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>
          {data.schedules.filter((s) => !gone.includes(s.schedule_id)).map((s) => (
            <tr key={s.schedule_id}>
              <td>{s.script_hash ? <a href={`#/scripts/${s.script_hash}`}>{s.name || s.script_hash.slice(0, 12)}</a> : s.name} <SharedMark kind="schedule" of={s} /></td>
              <td>{inWords(s.schedule) ?? ''} <code class="soft">{s.schedule}</code> {s.timezone && <span class="soft">{s.timezone}</span>}</td>
              <td>{s.paused ? <State state="paused" /> : s.next_run && <Until time={s.next_run * 1000} />}</td>
              <td>{s.last_run && (s.last_job_id ? <a href={`#/jobs/${s.last_job_id}`}>{when(s.last_run * 1000)}</a> : when(s.last_run * 1000))}</td>
              <td class="num" data-label="Started">{s.started}{s.skipped ? `, ${s.skipped} skipped` : ''}</td>
              <td class="row">
                <ShareButton kind="schedule" id={s.schedule_id} name={`the schedule of ${s.name || 'this script'}`} of={s} />
                {isPermitted(s, 'edit') && <><button type="button" onClick={() => (s.paused ? act('schedule_resume', s, 'schedule resumed') : act('schedule_pause', s, 'schedule paused'))}>{s.paused ? 'Resume' : 'Pause'}</button>
                <button type="button" onClick={() => void remove(s)}>Remove</button></>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
