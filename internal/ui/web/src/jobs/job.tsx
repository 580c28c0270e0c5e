// A job as the server tells it, and the parts that several pages show of it.
import { Ask } from '../parts/ask'
import type { OutputLine } from '../parts/output'
import { duration, firstLine } from '../format'
import { call } from '../mcp'
import { go } from '../route'
import { isPermitted, type Owned } from '../shares'
import { attempt } from '../upstream'

export interface Job extends Owned {
  job_id: string
  status: string
  name?: string
  script_hash?: string
  creator?: string
  by?: string
  tags: string[]
  schedule_id?: string
  created_at: number
  started_at?: number
  completed_at?: number
  progress: number
  message?: string
  error?: { code: string; message: string; hint?: string; line?: number }
  trace_id?: string
  params?: Record<string, unknown>
  result?: unknown
}

/** An effect of a job. */
export interface Step {
  step: number
  effect: string
  kind: string
  call: string
  time: number
  done: boolean
  error?: string
  outcome?: unknown
}

/** The name of a job, or of its script. */
export function titleOf(j: Job): string {
  if (j.tags.some((t) => t.startsWith('undo:'))) return j.name ? `Undo of ${j.name.replace(/^undo( of)? /, '')}` : 'Undo of a run'
  return j.name || (j.script_hash ? `Script ${j.script_hash.slice(0, 6)}` : j.job_id)
}

export function active(j: Job): boolean {
  return j.status === 'pending' || j.status === 'running' || j.status === 'waiting'
}

export function took(j: Job): string {
  return j.started_at ? duration(((j.completed_at ?? Date.now() / 1000) - j.started_at) * 1000) : ''
}

export const journalOf = (id: string, signal: AbortSignal) => call<{ steps: Step[]; total: number }>('job_journal', { job_id: id, limit: 1000 }, signal)
export const logsOf = (id: string, signal: AbortSignal) => call<{ lines: OutputLine[] }>('job_logs', { job_id: id }, signal)

export function Progress({ job }: { job: Job }) {
  if (job.error) return <span class="bad brief">{firstLine(job.error.message)}</span>
  if (job.status === 'waiting' && job.message?.startsWith('waits for ')) return <span class="soft">{firstLine(job.message)}</span>
  if (job.status === 'waiting') return <a href="#/approvals">waits for you</a>
  if (job.status !== 'running') return <span class="soft">{job.message}</span>
  return <><progress max={1} value={job.progress} aria-label={`progress of ${job.name || job.job_id}`} /> {job.message}</>
}

/** Cancels a job. What it did stays done, so the page asks first. */
export function Cancel({ job }: { job: Job }) {
  if (!isPermitted(job, 'edit')) return null
  return (
    <Ask label="Cancel" question={`Cancel ${titleOf(job)}? It stops now. What it has done stays done; it can be started again.`} yes="Cancel the job" action={() => void attempt(() => call('job_cancel', { job_id: job.job_id }))} />
  )
}

/** Starts the same script with the same parameters as a new job. */
export function Retry({ job }: { job: Job }) {
  if (!job.script_hash || job.shared || job.tags.some((t) => t.startsWith('undo:'))) return null // its script was not stored, or is somebody else's
  return (
    <button type="button" onClick={() => void attempt(async () => {
      const { params } = job.params ? job : await call<Job>('job_status', { job_id: job.job_id })
      const started = await call<{ job_id: string }>('lua_execute', { script_hash: job.script_hash, params: params ?? {}, tags: job.tags })
      go(`jobs/${started.job_id}`)
    }, `${titleOf(job)} started again`)}>{job.status === 'complete' ? 'Run again' : 'Retry'}</button>
  )
}
