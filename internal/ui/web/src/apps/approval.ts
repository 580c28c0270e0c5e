// An App: one request for approval, with its plan. It is decided on our own page.
import { deedOf } from '../deed'
import { ago, count, until } from '../format'
import type { Approval } from '../parts/approval'
import { act, can, connect, grantOf, h, openLink, render, tellModel, type Grant, type Result } from './host'

const every = 3000 // milliseconds between two looks at a request that waits

let grant: Grant | undefined
let shown: Approval | undefined
let problem = ''
let timer: ReturnType<typeof setInterval> | undefined

function show(r: Result): void {
  grant = grantOf(r) ?? grant
  const a = r.structuredContent as Approval | undefined
  if (!a?.approval_id) return
  change(a)
  clearInterval(timer)
  if (a.status === 'pending') timer = setInterval(() => void look(), every)
}

function change(a: Approval): void {
  if (shown?.status === 'pending' && a.status !== 'pending') {
    clearInterval(timer)
    tellModel(`The request ${a.approval_id} (${a.subject}) is ${a.status}${a.decided_by ? ` by ${a.decided_by}` : ''}.`)
  }
  shown = a
  draw()
}

async function look(): Promise<void> {
  if (!grant || document.visibilityState === 'hidden') return draw()
  await attempt(async () => change((await act<Approval>(grant!.key, 'status')).data))
}

async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
    problem = ''
  } catch (e) {
    problem = (e as Error).message
    draw()
  }
}

const decide = (action: string) => void attempt(async () => change((await act<Approval>(grant!.key, action, { plan: shown!.plan_digest })).data))

function draw(): void {
  const a = shown!
  const waits = a.status === 'pending'
  render(
    h('h1', {}, deedOf(a.subject, a.plan), !waits && h('span', { class: a.status === 'allowed' ? 'state good' : 'state bad' }, a.status)),
    h('p', { class: 'soft' }, h('code', {}, a.subject), a.asked_by && `, asked by ${a.asked_by} ${ago(a.created_at)}`),
    waits && h('p', { class: 'soft' }, `Denied by itself ${until(a.expires_at)}.`),
    !waits && a.decided_by !== undefined && h('p', { class: 'soft' }, `Decided by ${a.decided_by}.`),
    !!a.role && h('p', {}, `Needs ${count(a.needed ?? 1, 'approval')} by people with the role ${a.role}: ${a.agreed ?? 0} of ${a.needed ?? 1}.`),
    plan(a),
    !a.complete && a.plan.length > 0 && h('p', { class: 'warn' }, `The plan is incomplete: ${a.incomplete || 'the preview did not reach the end of the script'}.`),
    a.outcome?.error && h('p', { class: 'bad' }, a.outcome.error.message),
    a.outcome && !a.outcome.error && a.outcome.result !== undefined && h('pre', {}, JSON.stringify(a.outcome.result, null, 1)),
    problem !== '' && h('p', { class: 'bad', role: 'alert' }, problem),
    waits && buttons(),
  )
}

function plan(a: Approval): HTMLElement {
  return h('ol', {}, ...a.plan.map((p) => h('li', { value: p.number }, h('code', {}, p.action ?? p.effect ?? ''), p.uncertain && h('span', { class: 'warn' }, ' depends on a mocked result'),
    ...Object.entries(p.diff ? {} : p.arguments ?? {}).map(([name, value]) => h('div', { class: 'argument' }, h('b', {}, name), ' ', h('span', {}, typeof value === 'string' ? value : JSON.stringify(value)))),
    p.diff !== undefined && p.diff !== '' && h('pre', {}, ...p.diff.split('\n').map((line) => h('div', { class: kindOf(line) }, line || ' '))))))
}

const kindOf = (line: string) => (/^(\+\+\+|---|@@)/.test(line) ? 'soft' : line.startsWith('+') ? 'good' : line.startsWith('-') ? 'bad' : undefined)

function buttons(): HTMLElement {
  if (!grant?.url) return h('p', {}, 'Decide on the page of Luanette: luanette open')
  const open = can('openLinks')
    ? h('button', { class: 'main', click: () => void attempt(() => openLink(grant!.url)) }, 'Open to decide')
    : h('p', {}, 'Decide at ', h('code', {}, grant.url))
  return grant.decide
    ? h('p', { class: 'row' }, h('button', { class: 'main', click: () => decide('allow') }, 'Allow'), h('button', { click: () => decide('deny') }, 'Deny'), open)
    : h('p', { class: 'row' }, open)
}

void connect('luanette-approval', show, () => clearInterval(timer))
