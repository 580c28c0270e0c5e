import { useEffect, useState } from 'preact/hooks'
import { firstLine } from '../format'
import { call, newTrace } from '../mcp'
import { Form, useCheck, type Values } from '../parts/form'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import type { Language } from '../parts/editor'
import { Actions } from '../playground/actions'
import { hasMain, parameters } from '../playground/description'
import { dropDraft, inLanguage, keepDraft, languageOf, loadDraft, newDraft, type Draft } from '../playground/draft'
import type { Fault } from '../playground/mark'
import { Outcome, Planned } from '../playground/outcome'
import { evaluate, failed, globals, preview, ranAs, type Answer, type Code, type Run } from '../playground/run'
import { Versions } from '../playground/versions'
import { ShareButton } from '../parts/share'
import { useData } from '../resource'
import { route } from '../route'
import { lazy } from '../shell/lazy'
import { attempt } from '../upstream'

const Editor = lazy(() => import('../parts/editor').then((m) => m.default))

/** Writes and runs scripts; the address may name a stored one. */
export function Playground({ rest }: { rest: string }) {
  return <Script key={rest} hash={rest} />
}

function Script({ hash }: { hash: string }) {
  const [draft, setDraft] = useState<Draft>(() => loadDraft(hash) ?? newDraft('lua'))
  const change = (next: Draft) => {
    keepDraft(hash, next)
    setDraft(next)
  }
  const load = () => {
    if (!hash) {
      dropDraft(hash)
      setDraft(newDraft(draft.language))
      return
    }
    call<{ hash: string; content: string; tags: string[] }>('script_get', { script_hash: hash }).then((s) => {
      dropDraft(hash)
      setDraft({ code: s.content, saved: s.content, parent: s.hash, language: languageOf(s.tags) })
    }, (e: Error) => notify('bad', e.message))
  }
  const discard = () => {
    notify('good', 'draft discarded', () => change(draft))
    load()
  }
  useEffect(() => {
    if (hash && !loadDraft(hash)) load()
  }, [hash])
  return <Bench draft={draft} change={change} discard={discard} kept={loadDraft(hash) !== undefined} />
}

/** The editor with its actions, what belongs to the script beside it, and the result below. */
function Bench({ draft, change, discard, kept }: { draft: Draft; change: (d: Draft) => void; discard: () => void; kept: boolean }) {
  const session = useSession(draft.language)
  const [ran, setRan] = useState<Run>()
  const [busy, setBusy] = useState<AbortController>()
  const [values, setValues] = useState<Values>({})
  const [fault, setFault] = useState<Fault | undefined>(faultInAddress)
  const described = useDescription(draft)
  const { problems, valid } = useCheck(described, values)
  const code = (): Code => ({ code: draft.code, language: draft.language, session_id: session.id, ...(hasMain(draft.code) && { params: values }) })
  const execute = async (kind: Run['kind'], action: (code: Code, signal: AbortSignal, trace: string) => Promise<Answer>) => {
    if (!valid()) return
    const control = new AbortController()
    const began = Date.now()
    const trace = newTrace()
    setBusy(control)
    const answer = await action(code(), control.signal, trace).catch(failed)
    setRan({ kind, ...answer, took: Date.now() - began, trace })
    setFault(answer.error?.line ? { ...answer.error, line: answer.error.line, message: firstLine(answer.error.message) } : undefined)
    setBusy(undefined)
  }
  const run = () => void execute('run', async (...args) => {
    const answer = await evaluate(...args)
    await session.refresh()
    return answer
  })
  const edit = (text: string) => {
    setFault(undefined)
    change({ ...draft, code: text })
  }
  const waits = busy !== undefined || session.busy
  return (
    <>
      <div class="split play">
        <section aria-label="Editor">
          <div class="row">
            <label for="language">Language</label>
            <select id="language" value={draft.language} onChange={(e) => change(inLanguage(draft, e.currentTarget.value as Language))}>
              <option value="lua">Lua</option><option value="javascript">JavaScript</option><option value="typescript">TypeScript</option>
            </select>
            <label><input type="checkbox" checked={session.wanted} onChange={(e) => void session.keep(e.currentTarget.checked)} /> keep variables</label>
            {session.id && <ShareButton kind="session" id={session.id} name="these variables" of={{}} />}
            {kept && <><span class="soft small">draft kept in this tab</span><button type="button" onClick={discard}>Discard draft</button></>}
          </div>
          <Editor value={draft.code} language={draft.language} fault={fault} change={edit} run={run} />
          <div class="row actions">
            <button class="main" type="button" disabled={waits} onClick={run}>Run</button>
            <button type="button" disabled={waits} onClick={() => void execute('preview', preview)}>Preview</button>
            {busy && <button type="button" onClick={() => busy.abort()}>Stop</button>}
            <Actions draft={draft} params={hasMain(draft.code) ? values : undefined} valid={valid} change={change} />
          </div>
        </section>
        <div>
          {described && <section class="panel" aria-label="Parameters"><h2>Parameters of main</h2><Form schema={described} values={values} change={setValues} problems={problems} /></section>}
          {ran && <Planned ran={ran} />}
          {session.id && <Variables all={session.variables} />}
          <Versions draft={draft} load={edit} />
          {!described && !ran?.plan && !session.id && !draft.parent && <About />}
        </div>
      </div>
      <section aria-label="Result of the run" aria-live="polite"><Outcome ran={ran} /></section>
    </>
  )
}

/** What the space beside the editor is for, until there is something. */
function About() {
  return (
    <section class="panel" aria-label="About scripts">
      <h2>What a script can be</h2>
      <p><b>A few lines</b>: what they return is the result. Tools are <code>mcp.SERVER.TOOL</code>; the editor completes servers, tools, arguments and fields of results.</p>
      <p><b>A tool of your own</b>: define <code>describe()</code> and <code>main(params)</code>. The form for the parameters appears here. Publish makes it a tool that agents see.</p>
      <p><b>Preview</b> runs it without effects and shows here what it would change. <b>Run as job</b> runs it in the background, where it survives a restart.</p>
      <p class="soft small"><kbd>Ctrl Enter</kbd> runs it, <kbd>Ctrl Space</kbd> completes.</p>
    </section>
  )
}

/** The line that a link names, such as that of a job that failed. */
function faultInAddress(): Fault | undefined {
  const line = Number(route.value.query.get('line'))
  return line > 0 ? { line, message: 'the job failed here' } : undefined
}

/** How long after the last key describe() is asked again. */
const pause = 700

/** The parameters of the script, asked again when its text has changed. */
function useDescription(draft: Draft) {
  const [settled, setSettled] = useState(draft)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(draft), pause)
    return () => clearTimeout(timer)
  }, [draft])
  return useData((s) => parameters(settled, s), [settled.code, settled.language]).data
}

/** A session that keeps variables between runs, if somebody wants one. */
function useSession(language: Language) {
  const given = route.value.query.get('session') ?? undefined // that somebody shares
  const [id, setID] = useState<string>()
  const [wanted, setWanted] = useState(given !== undefined) // creating one takes a moment
  const [busy, setBusy] = useState(false)
  const [variables, setVariables] = useState<Record<string, string>>({})
  useEffect(() => {
    setID(undefined)
    setWanted(given !== undefined)
    setVariables({})
    if (given) void attempt(async () => { // what is done in a session of somebody else would be theirs: it is done in a copy
      const { session_id } = await call<{ session_id: string }>('session_fork', { session_id: given })
      setVariables(await globals(language, session_id))
      setID(session_id)
    }, 'you have a copy of the variables')
  }, [language, given])
  const keep = async (on: boolean) => {
    setWanted(on)
    setBusy(true)
    setVariables({})
    try {
      if (id) await call('session_close', { session_id: id })
      setID(on ? (await call<{ session_id: string }>('session_create', { language: ranAs(language) })).session_id : undefined)
    } catch (e) {
      notify('bad', (e as Error).message)
      setWanted(id !== undefined)
    }
    setBusy(false)
  }
  const refresh = async () => {
    if (id) setVariables(await globals(language, id))
  }
  return { id, wanted, busy, variables, keep, refresh }
}

function Variables({ all }: { all: Record<string, string> }) {
  return (
    <section class="panel" aria-label="Variables">
      <h2>Variables</h2>
      {Object.keys(all).length === 0 ? <Hint>None yet.</Hint> : (
        <table><tbody>{Object.entries(all).map(([k, v]) => <tr key={k}><td class="mono">{k}</td><td class="mono soft breaks">{v}</td></tr>)}</tbody></table>
      )}
    </section>
  )
}
