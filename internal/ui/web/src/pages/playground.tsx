import { lazy, Suspense } from 'preact/compat'
import { useEffect, useState } from 'preact/hooks'
import { get } from '../api'
import { call, newTrace, ToolError } from '../mcp'
import { useData } from '../resource'
import { duration } from '../format'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { Json } from '../parts/json'
import { Output, type OutputLine } from '../parts/output'
import { Plan, type Planned } from '../parts/plan'
import { Waterfall, type Trace } from '../parts/waterfall'
import type { Language } from '../parts/editor'

const Editor = lazy(() => import('../parts/editor'))

interface Run {
  kind: 'run' | 'preview'
  error?: string
  result?: unknown
  output?: OutputLine[]
  plan?: Planned[]
  certain?: boolean
  status?: string
  complete?: boolean
  took: number
  trace: string
}

/** The result of a run or a preview. */
type Answer = Omit<Run, 'kind' | 'took' | 'trace'>

const first: Record<Language, string> = {
  lua: '-- Press Ctrl+Enter to run. Tools are mcp.<namespace>.<tool>{...}.\nprint("hello")\nreturn { namespaces = mcp.namespaces() }\n',
  javascript: '// Press Ctrl+Enter to run. Tools are await mcp.<namespace>.<tool>({...}).\nconsole.log("hello")\nreturn { now: new Date() }\n',
}

export function Playground({ rest }: { rest: string }) {
  const [language, setLanguage] = useState<Language>('lua')
  const [code, setCode] = useState(first.lua)
  const [session, setSession] = useState<string>()
  const [keeping, setKeeping] = useState(false) // the user wants a session; creating it takes a moment
  const [ran, setRan] = useState<Run>()
  const [busy, setBusy] = useState<AbortController>()
  const [variables, setVariables] = useState<Record<string, string>>({})
  const [parent, setParent] = useState<string>()
  useEffect(() => {
    if (!rest) return
    call<{ hash: string; content: string; tags: string[] }>('script_get', { script_hash: rest }).then((s) => {
      setCode(s.content)
      setParent(s.hash)
      setLanguage(s.tags.some((t) => t === 'type:javascript' || t === 'type:typescript') ? 'javascript' : 'lua')
    }, (e: Error) => notify('bad', e.message))
  }, [rest])
  const changeLanguage = (to: Language) => {
    if (code === first[language]) setCode(first[to])
    setLanguage(to)
    setSession(undefined)
    setKeeping(false)
    setVariables({})
  }
  const execute = async (kind: Run['kind'], action: (signal: AbortSignal, trace: string) => Promise<Answer>) => {
    const control = new AbortController()
    const began = Date.now()
    const trace = newTrace()
    setBusy(control)
    try {
      setRan({ kind, ...(await action(control.signal, trace)), took: Date.now() - began, trace })
    } catch (e) {
      const output = e instanceof ToolError ? (e.result?.structuredContent as { output?: OutputLine[] } | undefined)?.output : undefined
      setRan({ kind, error: (e as Error).message, output, took: Date.now() - began, trace })
    }
    setBusy(undefined)
  }
  const run = () => execute('run', async (signal, trace) => {
    const answer = await evaluate(language, code, session, signal, trace)
    if (session) setVariables(await globals(language, session))
    return answer
  })
  const preview = () => execute('preview', (signal, trace) => call<Answer>('lua_preview', { code, session_id: session }, signal, trace))
  const save = async (publish: boolean) => {
    try {
      const stored = await call<{ hash: string; warnings?: string[] }>('script_store', { content: code, parent })
      setParent(stored.hash)
      if (publish) {
        const tool = await call<{ name: string; version: number }>('script_publish', { script_hash: stored.hash })
        notify('good', `${tool.name} is a tool now, version ${tool.version}`)
      } else {
        notify('good', `saved as ${stored.hash.slice(0, 12)}${stored.warnings ? `; ${stored.warnings.join('; ')}` : ''}`)
      }
    } catch (e) {
      notify('bad', (e as Error).message)
    }
  }
  const keep = async (on: boolean) => {
    setKeeping(on)
    setBusy(new AbortController()) // disables Run until the session exists
    setVariables({})
    try {
      if (session) await call('session_close', { session_id: session })
      setSession(on ? (await call<{ session_id: string }>('session_create', { language })).session_id : undefined)
    } catch (e) {
      notify('bad', (e as Error).message)
      setKeeping(session !== undefined)
    }
    setBusy(undefined)
  }
  return (
    <div class="split play">
      <section aria-label="Editor">
        <div class="row">
          <label for="language">Language</label>
          <select id="language" value={language} onChange={(e) => changeLanguage(e.currentTarget.value as Language)}>
            <option value="lua">Lua</option><option value="javascript">JavaScript</option>
          </select>
          <label><input type="checkbox" checked={keeping} onChange={(e) => void keep(e.currentTarget.checked)} /> keep variables</label>
        </div>
        <Suspense fallback={<p class="soft">Loading the editor…</p>}>
          <Editor value={code} language={language} change={setCode} run={() => void run()} />
        </Suspense>
        <div class="row actions">
          <button class="main" type="button" disabled={busy !== undefined} onClick={() => void run()}>Run</button>
          <button type="button" disabled={busy !== undefined} onClick={() => void preview()}>Preview</button>
          {busy && <button type="button" onClick={() => busy.abort()}>Stop</button>}
          <button type="button" onClick={() => void save(false)}>Save</button>
          <button type="button" onClick={() => void save(true)}>Publish</button>
        </div>
        {session && (
          <>
            <h2>Variables</h2>
            {Object.keys(variables).length === 0 ? <Hint>None yet.</Hint> : (
              <table><tbody>{Object.entries(variables).map(([k, v]) => <tr key={k}><td class="mono">{k}</td><td class="mono soft">{v}</td></tr>)}</tbody></table>
            )}
          </>
        )}
      </section>
      <section aria-label="Result of the run" aria-live="polite">{ran ? <Outcome ran={ran} /> : <Hint>No run yet. Run executes the script; Preview shows what it would change.</Hint>}</section>
    </div>
  )
}

function Outcome({ ran }: { ran: Run }) {
  return (
    <>
      <p class="soft ran">{ran.kind === 'run' ? 'Ran' : 'Previewed'} in {duration(ran.took)}</p>
      {ran.error && <pre class="bad">{typeof ran.error === 'string' ? ran.error : (ran.error as { message: string }).message}</pre>}
      {ran.status === 'pending_approval' && <p class="warn">It is waiting for <a href="#/approvals">approval</a>.</p>}
      {ran.plan && (
        <>
          <h2>Plan</h2>
          <Plan steps={ran.plan} />
          {ran.complete === false && <p class="warn">The plan is incomplete: the preview did not reach the end of the script.</p>}
        </>
      )}
      {ran.result !== undefined && ran.status !== 'pending_approval' && <><h2>Result</h2><Json value={ran.result} /></>}
      <h2>Output</h2>
      <Output lines={(ran.output ?? []).filter((l) => l.stream !== 'log')} />
      {ran.output?.some((l) => l.stream === 'log') && <><h2>Log</h2><Output lines={ran.output.filter((l) => l.stream === 'log')} /></>}
      <h2>Trace</h2>
      <RunTrace id={ran.trace} />
    </>
  )
}

/** The trace of a run. */
function RunTrace({ id }: { id: string }) {
  const { data, error } = useData((s) => retry(() => get<Trace>(`/api/v1/traces/${id}`, s)), [id])
  if (error) return <p class="soft">{error.message}</p>
  return data ? <><Waterfall trace={data} /><p><a href={`#/traces/${id}`}>Open trace</a></p></> : <p class="soft">…</p>
}

/** Retries: the server stores a span when it ends, which may be after the response. */
async function retry<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await load()
    } catch (e) {
      if (tries === 5) throw e
      await new Promise((resolve) => setTimeout(resolve, 100 << tries))
    }
  }
}

async function evaluate(language: Language, code: string, session: string | undefined, signal?: AbortSignal, trace?: string): Promise<Answer> {
  if (language === 'lua') return call('lua_eval', { code, session_id: session }, signal, trace)
  const answer = await call<{ result?: unknown; logs: { level: string; message: string }[] }>('execute_code', { code, language, session_id: session }, signal, trace)
  return { result: answer.result, output: (answer.logs ?? []).map((l) => ({ stream: l.level === 'error' ? 'stderr' : 'stdout', text: l.message })) }
}

const listGlobals: Record<Language, string> = {
  lua: 'local all = {} for name, value in pairs(_G) do if type(name) == "string" then local text = repr(value):sub(1, 80) all[name] = type(value) ~= "function" and utf8.len(text) and text or type(value) end end return all',
  javascript: 'return Object.fromEntries(Object.keys(globalThis).map(k => [k, typeof globalThis[k] === "function" ? "function" : String(JSON.stringify(globalThis[k])).slice(0, 80)]))',
}

/** The variables of a session that a new session does not have. */
async function globals(language: Language, session: string): Promise<Record<string, string>> {
  const load = async (id?: string) => ((await evaluate(language, listGlobals[language], id)).result ?? {}) as Record<string, string>
  const [fresh, now] = await Promise.all([load(), load(session)])
  return Object.fromEntries(Object.entries(now).filter(([k]) => !(k in fresh)).sort())
}
