import { lazy, Suspense } from 'preact/compat'
import { useEffect, useState } from 'preact/hooks'
import { call, newTrace, ToolError } from '../mcp'
import { Form, type Values } from '../parts/form'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import type { Language } from '../parts/editor'
import type { OutputLine } from '../parts/output'
import { Actions } from '../playground/actions'
import { hasMain, parameters } from '../playground/description'
import { dropDraft, inLanguage, keepDraft, loadDraft, newDraft, type Draft } from '../playground/draft'
import { Outcome } from '../playground/outcome'
import { evaluate, globals, preview, type Answer, type Code, type Run } from '../playground/run'
import { useData } from '../resource'

const Editor = lazy(() => import('../parts/editor'))

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
    if (!hash) return change(newDraft(draft.language))
    call<{ hash: string; content: string; tags: string[] }>('script_get', { script_hash: hash }).then((s) => {
      dropDraft(hash)
      setDraft({ code: s.content, saved: s.content, parent: s.hash, language: s.tags.some((t) => t === 'type:javascript' || t === 'type:typescript') ? 'javascript' : 'lua' })
    }, (e: Error) => notify('bad', e.message))
  }
  useEffect(() => {
    if (hash && !loadDraft(hash)) load()
  }, [hash])
  return <Bench draft={draft} change={change} restart={load} kept={loadDraft(hash) !== undefined} />
}

/** The editor with its actions, and the result beside it. */
function Bench({ draft, change, restart, kept }: { draft: Draft; change: (d: Draft) => void; restart: () => void; kept: boolean }) {
  const session = useSession(draft.language)
  const [ran, setRan] = useState<Run>()
  const [busy, setBusy] = useState<AbortController>()
  const [values, setValues] = useState<Values>({})
  const described = useDescription(draft)
  const code = (): Code => ({ code: draft.code, language: draft.language, session_id: session.id, ...(hasMain(draft.code) && { params: values }) })
  const execute = async (kind: Run['kind'], action: (code: Code, signal: AbortSignal, trace: string) => Promise<Answer>) => {
    const control = new AbortController()
    const began = Date.now()
    const trace = newTrace()
    setBusy(control)
    try {
      setRan({ kind, ...(await action(code(), control.signal, trace)), took: Date.now() - began, trace })
    } catch (e) {
      const output = e instanceof ToolError ? (e.result?.structuredContent as { output?: OutputLine[] } | undefined)?.output : undefined
      setRan({ kind, error: (e as Error).message, output, took: Date.now() - began, trace })
    }
    setBusy(undefined)
  }
  const run = () => void execute('run', async (...args) => {
    const answer = await evaluate(...args)
    await session.refresh()
    return answer
  })
  const waits = busy !== undefined || session.busy
  return (
    <div class="split play">
      <section aria-label="Editor">
        <div class="row">
          <label for="language">Language</label>
          <select id="language" value={draft.language} onChange={(e) => change(inLanguage(draft, e.currentTarget.value as Language))}>
            <option value="lua">Lua</option><option value="javascript">JavaScript</option>
          </select>
          <label><input type="checkbox" checked={session.wanted} onChange={(e) => void session.keep(e.currentTarget.checked)} /> keep variables</label>
          {kept && <><span class="soft small">draft kept in this tab</span><button type="button" onClick={restart}>Discard draft</button></>}
        </div>
        <Suspense fallback={<p class="soft">Loading the editor…</p>}>
          <Editor value={draft.code} language={draft.language} change={(text) => change({ ...draft, code: text })} run={run} />
        </Suspense>
        {described && <section class="panel" aria-label="Parameters"><h3>Parameters of main</h3><Form schema={described} values={values} change={setValues} /></section>}
        <div class="row actions">
          <button class="main" type="button" disabled={waits} onClick={run}>Run</button>
          <button type="button" disabled={waits} onClick={() => void execute('preview', preview)}>Preview</button>
          {busy && <button type="button" onClick={() => busy.abort()}>Stop</button>}
          <Actions draft={draft} params={hasMain(draft.code) ? values : undefined} change={change} />
        </div>
        {session.id && <Variables all={session.variables} />}
      </section>
      <section aria-label="Result of the run" aria-live="polite"><Outcome ran={ran} /></section>
    </div>
  )
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
  const [id, setID] = useState<string>()
  const [wanted, setWanted] = useState(false) // creating it takes a moment
  const [busy, setBusy] = useState(false)
  const [variables, setVariables] = useState<Record<string, string>>({})
  useEffect(() => {
    setID(undefined)
    setWanted(false)
    setVariables({})
  }, [language])
  const keep = async (on: boolean) => {
    setWanted(on)
    setBusy(true)
    setVariables({})
    try {
      if (id) await call('session_close', { session_id: id })
      setID(on ? (await call<{ session_id: string }>('session_create', { language })).session_id : undefined)
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
    <>
      <h2>Variables</h2>
      {Object.keys(all).length === 0 ? <Hint>None yet.</Hint> : (
        <table><tbody>{Object.entries(all).map(([k, v]) => <tr key={k}><td class="mono">{k}</td><td class="mono soft">{v}</td></tr>)}</tbody></table>
      )}
    </>
  )
}
