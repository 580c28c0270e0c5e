// An App: one job, with its progress and its steps.
import { count, duration } from '../format'
import { aboutOf, isInternal, nameOf, rowsOf } from '../jobs/steps'
import type { Job, Step } from '../jobs/job'
import { act, can, connect, grantOf, h, openLink, render, tellModel, type Grant, type Result } from './host'

const every = 2000 // milliseconds between two looks at a job that has not ended
const mostSteps = 12

let grant: Grant | undefined
let job: (Job & { output?: { text: string }[] }) | undefined
let steps: Step[] = []
let note = '' // what came of a button
let timer: ReturnType<typeof setInterval> | undefined

const hasEnded = (status: string) => status === 'complete' || status === 'failed' || status === 'cancelled'

function show(r: Result): void {
  grant = grantOf(r) ?? grant
  const got = r.structuredContent as Job | undefined
  if (!got?.job_id) return
  change(got)
  clearInterval(timer)
  void look()
  if (!hasEnded(got.status)) timer = setInterval(() => void look(), every)
}

function change(now: Job): void {
  if (job && !hasEnded(job.status) && hasEnded(now.status)) {
    clearInterval(timer)
    tellModel(`The job ${now.job_id} is ${now.status}.`)
  }
  job = now
  draw()
}

async function look(): Promise<void> {
  if (!grant || document.visibilityState === 'hidden') return
  try {
    steps = (await act<{ steps: Step[] }>(grant.key, 'steps')).data.steps
    change((await act<Job>(grant.key, 'status')).data)
  } catch (e) {
    say((e as Error).message)
  }
}

function say(text: string): void {
  note = text
  draw()
}

async function press(action: string): Promise<void> {
  try {
    say((await act(grant!.key, action)).text)
    await look()
  } catch (e) {
    say((e as Error).message)
  }
}

function draw(): void {
  const j = job!
  const ended = hasEnded(j.status)
  render(
    h('h1', {}, j.name || j.job_id, h('span', { class: `state ${j.status === 'failed' ? 'bad' : j.status === 'complete' ? 'good' : ''}` }, j.status)),
    !ended && h('progress', { max: 1, value: j.progress, 'aria-label': 'progress' }),
    j.message !== undefined && j.message !== '' && h('p', { class: 'soft' }, j.message),
    j.started_at !== undefined && h('p', { class: 'soft' }, `${ended ? 'Took' : 'Runs for'} ${duration(((j.completed_at ?? Date.now() / 1000) - j.started_at) * 1000)}`),
    j.error && h('p', { class: 'bad' }, j.error.message, j.error.hint !== undefined && ` ${j.error.hint}`),
    list(),
    j.output && j.output.length > 0 && h('details', {}, h('summary', {}, 'Output'), h('pre', {}, j.output.map((l) => l.text).join('\n'))),
    j.result !== undefined && h('pre', {}, JSON.stringify(j.result, null, 1)),
    note !== '' && h('p', { role: 'status' }, note),
    grant && h('p', { class: 'row' },
      !ended && h('button', { click: () => void press('cancel') }, 'Cancel'),
      ended && steps.some((s) => s.kind === 'write') && h('button', { click: () => void press('undo') }, 'Undo'),
      grant.url !== '' && can('openLinks') && h('button', { class: 'main', click: () => void openLink(grant!.url).catch((e: Error) => say(e.message)) }, j.status === 'waiting' ? 'Open to decide' : 'Open')),
  )
}

function list(): HTMLElement | false {
  const rows = rowsOf(steps.filter((s) => !isInternal(s)), [], job!.started_at ?? 0)
  if (rows.length === 0) return false
  const hidden = rows.length - mostSteps
  return h('ol', { start: hidden > 0 ? hidden + 1 : 1 }, ...rows.slice(-mostSteps).map((row) => h('li', {},
    h('code', {}, nameOf(row.call)), ` ${aboutOf(row.call)}`, row.times > 1 && ` ${count(row.times, 'time')}`,
    row.error !== undefined ? h('span', { class: 'bad' }, ` ${row.error}`) : h('span', { class: 'soft' }, row.done ? ` ${duration(row.worked * 1000)}` : ' …'))))
}

void connect('luanette-job', show, () => clearInterval(timer))
