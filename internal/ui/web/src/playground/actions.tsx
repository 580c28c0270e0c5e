// What can be done with a script beside running it: save, publish, run as a job, schedule.
import { useState } from 'preact/hooks'
import { moment } from '../format'
import { call } from '../mcp'
import { notify } from '../parts/notices'
import { go } from '../route'
import type { Draft } from './draft'

interface Props {
  draft: Draft
  params?: Record<string, unknown>
  valid: () => boolean // whether the parameters can be sent; it shows what is missing
  change: (draft: Draft) => void
}

export function Actions({ draft, params, valid, change }: Props) {
  const [schedule, setSchedule] = useState<string>()
  /** Stores the draft unless it is stored already, and returns its hash. */
  const save = async (): Promise<{ hash: string; warnings?: string[] }> => {
    if (draft.parent && draft.saved === draft.code) return { hash: draft.parent }
    const stored = await call<{ hash: string; warnings?: string[] }>('script_store', { content: draft.code, language: draft.language, parent: draft.parent })
    change({ ...draft, parent: stored.hash, saved: draft.code })
    return stored
  }
  /** Does an action with the stored script, and says what happened. */
  const withSaved = async (action: (hash: string, warnings?: string[]) => Promise<string>) => {
    try {
      const { hash, warnings } = await save()
      notify('good', await action(hash, warnings))
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  const publish = () => withSaved(async (hash) => {
    const tool = await call<{ name: string; version: number }>('script_publish', { script_hash: hash })
    return `${tool.name} is a tool now, version ${tool.version}`
  })
  const start = () => withSaved(async (hash) => {
    const job = await call<{ job_id: string }>('lua_execute', { script_hash: hash, params: params ?? {} })
    go(`jobs/${job.job_id}`)
    return 'started as a job'
  })
  const plan = () => withSaved(async (hash) => {
    const made = await call<{ next_run: number }>('lua_execute', { script_hash: hash, params: params ?? {}, schedule })
    setSchedule(undefined)
    return `scheduled, next at ${moment(made.next_run * 1000)}`
  })
  return (
    <>
      <button type="button" onClick={() => void withSaved((hash, warnings) => Promise.resolve(`saved as ${hash.slice(0, 12)}${warnings ? `; ${warnings.join('; ')}` : ''}`))}>Save</button>
      <button type="button" onClick={() => void publish()}>Publish</button>
      <button type="button" onClick={() => valid() && void start()}>Run as job</button>
      {schedule === undefined
        ? <button type="button" onClick={() => setSchedule('@daily')}>Schedule…</button>
        : (
          <form class="row" onSubmit={(e) => { e.preventDefault(); if (valid()) void plan() }}>
            <label for="schedule">Schedule</label><input id="schedule" size={14} value={schedule} placeholder="0 7 * * 1-5" onInput={(e) => setSchedule(e.currentTarget.value)} />
            <button type="submit" class="main">Schedule</button><button type="button" onClick={() => setSchedule(undefined)}>Cancel</button>
          </form>
        )}
    </>
  )
}
