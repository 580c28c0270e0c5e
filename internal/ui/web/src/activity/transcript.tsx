// One session as a transcript: what was searched, called and returned.
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, home } from '../api'
import { clock, count, duration, when } from '../format'
import { request } from '../mcp'
import { ApprovalCard, decideApproval } from '../parts/approval'
import { Code } from '../parts/code'
import { Copy } from '../parts/copy'
import { Skeleton } from '../parts/skeleton'
import { Value } from '../parts/value'
import { keepDraft } from '../playground/draft'
import { useData } from '../resource'
import { go } from '../route'
import { waiting } from '../waiting'
import { Replay, Rule, ruleWords, verdicts, type Verdict } from './actions'
import { callsIn, cameBack, isScript, linesOf, outcomeOf, program, sourceOf, times, tokensOf, tokensText, wordsOf, worked, type Line, type Session, type Step } from './model'
import { reportOf, repeatable, scriptOf } from './script'

interface One {
  session: Session
  steps: Step[]
}

/** How many steps the server returns at once. */
const most = 500

export function Transcript({ id, moment, known, back }: { id: string; moment?: string; known?: Session; back: string }) {
  const address = `/api/v1/activity/${encodeURIComponent(id)}`
  const { data, error } = useData((s) => get<One>(address, s), [id], ['tool.call_ended', 'approval.', 'job.'])
  const [earlier, setEarlier] = useState<Step[]>([])
  const [whole, setWhole] = useState(false)
  const session = data?.session ?? known
  const steps = data ? [...earlier, ...data.steps] : []
  const more = data && data.steps.length > 0 && !whole && (earlier.length > 0 || data.steps.length >= most - 50)
  const load = async () => {
    const older = await get<One>(`${address}?before=${encodeURIComponent(steps[0].at)}`)
    setEarlier([...older.steps, ...earlier])
    if (older.steps.length === 0) setWhole(true)
  }
  const missing = moment !== undefined && more && !steps.some((s) => s.id === moment)
  useEffect(() => { // a link leads to what is further back
    if (missing) void load()
  }, [missing, earlier.length])
  const lines = linesOf(steps)
  return (
    <article class="transcript" aria-label="Session">
      <p class="back"><a href={back}>‹ All agents</a></p>
      {error && <p class="bad">{error.message} <a href={back}>All agents</a></p>}
      {session && <Head session={session} steps={steps} />}
      {session && <Numbers session={session} />}
      {session && <Saved session={session} />}
      {more && <button type="button" onClick={() => void load()}>Show earlier steps</button>}
      {!data && !error && <Skeleton rows={6} />}
      <ol class="entries">{lines.map((line) => <Entry key={line.step.id} line={line} session={session!} moment={moment} />)}</ol>
      <Fresh count={data ? lines.length : undefined} />
    </article>
  )
}

/** Follows the end of the transcript for who reads there, and tells others that there is more. */
function Fresh({ count: now }: { count?: number }) {
  const end = useRef<HTMLDivElement>(null)
  const known = useRef<number>()
  const [unread, setUnread] = useState(0)
  useEffect(() => {
    if (now === undefined) return
    const added = now - (known.current ?? now)
    known.current = now
    if (added <= 0) return
    if (end.current!.getBoundingClientRect().top < innerHeight + 240) end.current!.scrollIntoView({ block: 'end' })
    else setUnread((n) => n + added)
  }, [now])
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && setUnread(0))
    watch.observe(end.current!)
    return () => watch.disconnect()
  }, [])
  return <>{unread > 0 && <p class="fresh"><button type="button" class="main" onClick={() => end.current!.scrollIntoView({ block: 'end' })}>{unread} new</button></p>}<div ref={end} /></>
}

function Head({ session: s, steps }: { session: Session; steps: Step[] }) {
  const makeScript = () => {
    keepDraft('', { language: 'lua', code: scriptOf(s, steps) })
    go('playground')
  }
  const trace = steps.at(-1)?.trace
  return (
    <header>
      <h2>{s.title}</h2>
      <p class="soft small">{s.agent || program(s)} · {s.who === 'local' ? 'you' : s.name || s.who} · since {when(s.began)}</p>
      <div class="row">
        <button type="button" disabled={repeatable(steps).length === 0} title="The calls become a Lua script in the playground; repeated constants become parameters" onClick={makeScript}>Make this a script</button>
        {trace && <a class="button" href={`#/traces/${trace}`}>Trace</a>}
        {s.id.startsWith('job:') && <a class="button" href={`#/jobs/${s.id.slice(4)}`}>Job</a>}
        <Copy text={reportOf(s, steps)}>Copy for a bug report</Copy>
      </div>
    </header>
  )
}

function Numbers({ session: s }: { session: Session }) {
  return (
    <dl class="figures">
      <div><dt>Calls</dt><dd>{s.calls.toLocaleString('en')}</dd></div>
      <div><dt>Failed</dt><dd class={s.failed > 0 ? 'bad' : ''}>{s.failed}{s.denied > 0 && <span class="small"> {s.denied} denied</span>}</dd></div>
      <div><dt>Worked</dt><dd>{duration(s.worked_us / 1000)}</dd></div>
      <div><dt>Waited for you</dt><dd class={s.waited_us > 0 ? 'warn' : ''}>{s.waited_us > 0 ? duration(s.waited_us / 1000) : '–'}</dd></div>
    </dl>
  )
}

interface Costs {
  menu: string
  menus: { name: string; tokens: number }[]
  all: number
}

/** What the menu and scripts kept out of the context, against listing every tool. */
function Saved({ session: s }: { session: Session }) {
  const { data } = useData(async (signal) => {
    const read = await request<{ contents: { text: string }[] }>('resources/read', { uri: 'lua://tokens' }, signal)
    return JSON.parse(read.contents[0].text) as Costs
  }, [])
  if (!data || s.id.startsWith('job:')) return null
  const menu = data.menus.find((m) => m.name === data.menu)?.tokens ?? 0
  const with_ = menu + tokensOf(s.given), without = data.all + tokensOf(s.used)
  if (without <= with_) return null
  const bar = (label: string, first: number, second: number) => (
    <div class="bars"><span class="soft">{label}</span><span class="track" aria-hidden="true"><i style={{ width: `${(first / without) * 100}%` }} /><i class="second" style={{ width: `${(second / without) * 100}%` }} /></span><span class="num">about {(first + second).toLocaleString('en')}</span></div>
  )
  return (
    <section class="saved" aria-label="Tokens">
      <div class="row spread"><b>About {tokensText(without - with_)} tokens kept out of the context</b><span class="good small">{Math.round((1 - with_ / without) * 100)} % saved</span></div>
      {bar('With Luanette', menu, tokensOf(s.given))}
      {bar('Listing every tool', data.all, tokensOf(s.used))}
      <details class="small"><summary class="soft">How it is counted</summary><p>A token is taken as 4 bytes. With Luanette the client gets the menu ({menu.toLocaleString('en')} tokens) and what it sent and got itself. Otherwise it would get the definitions of all tools ({data.all.toLocaleString('en')}) and what each call of its scripts sent and got. The darker part is menu or definitions.</p></details>
    </section>
  )
}

function Entry({ line, session, moment }: { line: Line; session: Session; moment?: string }) {
  const s = line.step, words = wordsOf(line), outcome = outcomeOf(s)
  const chosen = moment !== undefined && (line.all.some((x) => x.id === moment) || holds(line, moment))
  const waits = isWaiting(s)
  const [open, setOpen] = useState(chosen || waits)
  const box = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (waits) setOpen(true)
  }, [waits])
  useEffect(() => {
    if (!chosen) return
    setOpen(true)
    box.current?.scrollIntoView({ block: 'center' })
  }, [chosen])
  const came = cameBack(line)
  const kind = outcome === 'ok' ? (isScript(s) ? 'script' : s.tool === 'search_tools' ? 'search' : 'call') : outcome
  return (
    <li ref={box} class={`entry of-${kind} ${chosen ? 'chosen' : ''}`}>
      <time dateTime={s.at}>{clock(s.at)}</time>
      <button type="button" class="what" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span>{words.verb} {words.name && <code>{words.name}</code>}{words.quoted && <b>“{words.quoted}”</b>} {line.all.length > 1 && <span class="soft">×{line.all.length}</span>} <span class="soft">{words.about}</span> <Ended line={line} /></span>
        {came && <span class={`soft small came ${words.quoted ? 'mono' : ''}`}>{came}</span>}
      </button>
      <span class="soft small cost">{count(tokensOf(line.all.reduce((n, x) => n + x.size + (x.sent ?? 0), 0)), 'token')} · {times(line)}</span>
      {line.waited > 0 && line.inner.length === 0 && <Bar line={line} from={Date.parse(s.at) - line.waited} span={line.waited + worked(line)} />}
      {line.inner.length > 0 && <Inner line={line} session={session} />}
      {open && <Detail line={line} session={session} />}
    </li>
  )
}

const holds = (line: Line, moment: string): boolean => line.inner.some((l) => l.all.some((x) => x.id === moment) || holds(l, moment))

function Ended({ line }: { line: Line }) {
  const outcome = outcomeOf(line.step)
  if (outcome === 'ok') return null
  if (outcome === 'asked') return isWaiting(line.step) ? <span class="warn">and waits for you</span> : <span class="soft">and asked</span>
  return <span class="bad">{outcome === 'denied' ? 'and was denied' : 'and failed'}</span>
}

/** Whether nobody has decided about the step yet. */
const isWaiting = (s: Step) => s.approval !== undefined && waiting.value?.approvals.some((a) => a.approval_id === s.approval) === true

/** What a job did, below the call that started it. */
function JobSteps({ id, session }: { id: string; session: Session }) {
  const { data, error } = useData((s) => get<One>(`/api/v1/activity/job:${id}`, s), [id], ['tool.call_ended', 'approval.', 'job.'])
  if (error) return <p class="soft small">The job has made no calls.</p>
  const inner = data ? linesOf(data.steps) : []
  if (inner.length === 0) return null
  const [first, last] = [data!.steps[0], data!.steps.at(-1)!]
  const span = Date.parse(last.at) - Date.parse(first.at) + last.took_us / 1000
  return <Inner line={{ step: { ...first, took_us: span * 1000 }, all: [], inner, waited: 0 }} session={session} />
}

/** The calls of a script, with bars on its time. */
function Inner({ line, session }: { line: Line; session: Session }) {
  const [all, setAll] = useState(false)
  const from = Date.parse(line.step.at)
  const span = Math.max(1, line.step.took_us / 1000)
  const few = 12
  return (
    <div class="inner">
      {line.inner.slice(0, all ? undefined : few).map((l) => (
        <details key={l.step.id}>
          <summary>
            <span class={outcomeOf(l.step) === 'ok' ? 'good' : outcomeOf(l.step) === 'asked' ? 'warn' : 'bad'} aria-label={outcomeOf(l.step)}>{outcomeOf(l.step) === 'ok' ? '✓' : outcomeOf(l.step) === 'asked' ? '?' : '✗'}</span>
            <code>{l.step.tool}</code>{l.all.length > 1 && <span class="soft">×{l.all.length}</span>}
            <span class="soft small oneline">{cameBack(l)}{callsIn(l) > 0 && `, ${count(callsIn(l), 'call')}`}</span>
            <Bar line={l} from={from} span={span} />
            <span class="soft small num">{times(l)}</span>
          </summary>
          <Detail line={l} session={session} />
          {l.inner.length > 0 && <Inner line={l} session={session} />}
        </details>
      ))}
      {line.inner.length > few && !all && <button type="button" onClick={() => setAll(true)}>Show {line.inner.length - few} more</button>}
    </div>
  )
}

/** When a call ran, and how long it waited for a person before. */
function Bar({ line, from, span }: { line: Line; from: number; span: number }) {
  const at = Date.parse(line.step.at)
  const place = (begin: number, end: number) => ({ left: `${Math.max(0, Math.min(98, ((begin - from) / span) * 100))}%`, width: `${Math.max(1, Math.min(100, ((end - begin) / span) * 100))}%` })
  const end = Math.max(...line.all.map((s) => Date.parse(s.at) + s.took_us / 1000))
  return <span class="lane" aria-hidden="true">{line.waited > 0 && <i class="wait" style={place(at - line.waited, at)} />}<i style={place(at, end)} /></span>
}

/** What was sent and came back, and what can be done about it. */
function Detail({ line, session }: { line: Line; session: Session }) {
  const [dialog, setDialog] = useState<'replay' | Verdict>()
  const s = line.step
  const link = `${home()}/#/activity/${session.id}/${s.id}`
  const isUpstream = s.tool.includes('.')
  const asScript = () => {
    const scripted = isScript(s) && sourceOf(s)
    keepDraft('', { language: scripted && wordsOf(line).about?.startsWith('JavaScript') ? 'javascript' : 'lua', code: scripted || scriptOf(session, line.all) })
    go('playground')
  }
  return (
    <div class="detail">
      {isScript(s) && sourceOf(s) ? <Code text={sourceOf(s)} language={wordsOf(line).about?.startsWith('Lua') ? 'lua' : 'javascript'} /> : s.args !== undefined && <section aria-label="Arguments"><h3>Sent</h3><Value value={s.args} /></section>}
      {(s.message || s.rule) && <p class="bad">{s.message}{s.rule && s.decision === 'deny' && ` (rule ${s.rule})`}</p>}
      {s.job && !s.approval && <JobSteps id={s.job} session={session} />}
      {s.approval ? <ApprovalCard id={s.approval} version={0} decide={(a, decision) => void decideApproval(a, decision)} /> : s.result !== undefined && <section aria-label="Result"><h3>Got</h3><Value value={s.result} /></section>}
      {line.all.length > 1 && <p class="soft small">The first of {line.all.length} calls is shown.</p>}
      <div class="row">
        {s.trace && <a class="button" href={`#/traces/${s.trace}`}>Trace</a>}
        {s.job && !s.approval && <a class="button" href={`#/activity/job:${s.job}`}>What the job did</a>}
        {outcomeOf(s) === 'asked' && !s.approval && <a class="button" href="#/approvals">Decide</a>}
        <button type="button" onClick={() => setDialog('replay')}>Replay…</button>
        {isUpstream && verdicts.map((one) => <button key={one} type="button" onClick={() => setDialog(one)}>{ruleWords[one].title}…</button>)}
        {(isScript(s) ? sourceOf(s) !== '' : repeatable(line.all).length > 0) && <button type="button" onClick={asScript}>Save as script</button>}
        <Copy text={link}>Copy link</Copy>
        <Copy text={reportOf(session, line.all)}>Copy for a bug report</Copy>
      </div>
      {dialog === 'replay' && <Replay step={s} close={() => setDialog(undefined)} />}
      {dialog && dialog !== 'replay' && <Rule session={session} step={s} verdict={dialog} close={() => setDialog(undefined)} />}
    </div>
  )
}
