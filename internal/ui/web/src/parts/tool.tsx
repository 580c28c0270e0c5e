// One tool: what it does, a form to try it, its last calls, and what can be changed about it.
import { useEffect, useState } from 'preact/hooks'
import { get, may, urlOf } from '../api'
import { loadCalls } from '../calls'
import { ago, count, duration, size } from '../format'
import { asCommand, asCurl, asJavaScript, asLua } from '../invocation'
import { call, callRaw, newTrace, ToolError, type ToolResult } from '../mcp'
import { useData } from '../resource'
import { replace } from '../route'
import { changeTool, loadTool, toolEvents, tokens, type Definition as Tool, type ListedTool } from '../tools'
import { Copy } from './copy'
import { Definition } from './definition'
import { Form, useCheck, type Problems, type Values } from './form'
import { Hint } from './hint'
import { Json } from './json'
import { Rename } from './rename'
import { Result } from './result'
import type { Trace } from './waterfall'
import { useHeading } from '../heading'
import { Effect } from './effect'
import { Skeleton } from './skeleton'

export function OneTool({ name }: { name: string }) {
  const { data, error } = useData((s) => call<{ tools: Tool[]; unknown?: { did_you_mean: string[] }[] }>('get_tool_definitions', { names: [name] }, s), [name], toolEvents)
  const tool = data?.tools[0]
  useHeading(tool?.title ?? name, { title: 'Tools', href: '#/tools' })
  const near = data?.unknown?.[0]?.did_you_mean ?? []
  return (
    <section aria-label="Tool">
      {error && <p class="bad">{error.message}</p>}
      {data && !tool && <p class="bad">There is no tool named {name}. {near.length > 0 && <>Did you mean {near.map((n) => <a key={n} href={`#/tools/${encodeURIComponent(n)}`}>{n} </a>)}?</>}</p>}
      {tool && <Shown tool={tool} />}
      {!data && !error && <Skeleton />}
    </section>
  )
}

function Shown({ tool }: { tool: Tool }) {
  const [server] = tool.name.includes('.') ? tool.name.split('.') : ['luanette']
  const listed = useData((s) => (may('read') ? loadTool(tool.name, s) : Promise.resolve(undefined)), [tool.name], toolEvents)
  const known = listed.data
  return (
    <>
      <div class="row title">{known && <Effect tool={known} />}{known?.exposed && <span class="tag at good">pinned</span>}{tool.stale && <span class="tag at warn">disconnected</span>}
        {known && tool.name.includes('.') && may('admin') && <span class="row"><Changes tool={known} reload={listed.reload} /></span>}
      </div>
      <p class="soft"><span class="mono">{tool.name}</span> of {server === 'luanette' ? 'Luanette' : <a href={`#/servers/${encodeURIComponent(server)}`}>{server}</a>}{known && `, ${tokens(known.tokens)}`}{known?.original && `, the server calls it ${known.original}`}</p>
      {server !== 'luanette' && <p class="small"><a href={urlOf(`/openapi.json?namespace=${encodeURIComponent(server)}`)} target="_blank" rel="noopener">OpenAPI document of {server}</a> <span class="soft">for programs that call its tools over HTTP</span></p>}
      <div class="columns wide-first">
        <div><p class="prose">{tool.description}</p><Try tool={tool} /></div>
        <div><LastCalls name={tool.name} /></div>
      </div>
      <details class="panel"><summary>Definition</summary>
        <Definition after={{ inputSchema: tool.input_schema, outputSchema: tool.output_schema, annotations: tool.annotations }} />
        {tool.learned_output_schema && <><h3>Result, learned from calls</h3><Json value={tool.learned_output_schema} depth={1} /></>}
        <h3>JSON schema of the arguments</h3><Json value={tool.input_schema} />
        {tool.output_schema && <><h3>JSON schema of the result</h3><Json value={tool.output_schema} depth={1} /></>}
      </details>
    </>
  )
}

/** Pin, rename and disable a tool. */
function Changes({ tool: t, reload }: { tool: ListedTool; reload: () => void }) {
  const [renaming, setRenaming] = useState(false)
  const moved = (name: string) => (name === t.name ? reload() : replace(`tools/${encodeURIComponent(name)}`))
  const pin = () => changeTool(t.name, { exposed: !t.exposed }, { exposed: t.exposed ?? false }, `${t.name} ${t.exposed ? 'unpinned' : 'pinned: clients see it in their list'}`, moved)
  const disable = () => changeTool(t.name, { disabled: true }, { disabled: false }, `${t.name} disabled`, () => replace(`tools?server=${encodeURIComponent(t.name.split('.')[0])}`))
  return (
    <>
      <button type="button" onClick={() => void pin()}>{t.exposed ? 'Unpin' : 'Pin'}</button>
      <button type="button" onClick={() => setRenaming(true)}>Rename</button>
      <button type="button" onClick={() => void disable()}>Disable</button>
      {renaming && <Rename tool={t} close={() => setRenaming(false)} moved={moved} />}
    </>
  )
}

interface Outcome {
  result?: ToolResult
  error?: string
  took: number
  trace: string
}

/** A form that calls a tool, and the result. */
export function Try({ tool }: { tool: Tool }) {
  const [values, setValues] = useState<Values>({})
  const [raw, setRaw] = useState<string>()
  const [running, setRunning] = useState<AbortController>()
  const [outcome, setOutcome] = useState<Outcome>()
  useEffect(() => () => running?.abort(), [running])
  const { problems, valid } = useCheck(tool.input_schema, values)
  const run = async () => {
    if (!valid()) return
    const control = new AbortController()
    const began = performance.now(), trace = newTrace()
    setRunning(control)
    try {
      const result = await callRaw('call_tool', { name: tool.name, arguments: values }, control.signal, trace)
      setOutcome({ result, took: performance.now() - began, trace })
    } catch (e) {
      setOutcome({ error: (e as Error).message, result: e instanceof ToolError ? e.result : undefined, took: performance.now() - began, trace })
    }
    setRunning(undefined)
  }
  return (
    <>
      <form class="panel" aria-label="Try it" onSubmit={(e) => { e.preventDefault(); void run() }}>
        <div class="segments" role="group" aria-label="Arguments as">
          <button type="button" aria-pressed={raw === undefined} onClick={() => setRaw(undefined)}>Form</button>
          <button type="button" aria-pressed={raw !== undefined} onClick={() => setRaw(JSON.stringify(values, null, 2))}>JSON</button>
        </div>
        {raw === undefined ? <Form schema={tool.input_schema} values={values} change={setValues} problems={problems} /> : <RawArguments text={raw} change={setRaw} values={setValues} problems={problems} />}
        <div class="row actions">
          <button class="main" type="submit" disabled={running !== undefined}>Try it</button>
          {running && <button type="button" onClick={() => running.abort()}>Stop</button>}
          <Copy text={asCurl(tool, values)}>Copy as curl</Copy>
          <Copy text={asCommand(tool, values)}>Copy as command</Copy>
          <Copy text={asLua(tool, values)}>Copy as Lua</Copy>
          <Copy text={asJavaScript(tool, values)}>Copy as JavaScript</Copy>
        </div>
      </form>
      {outcome && (
        <section class="panel" aria-label="Result" aria-live="polite">
          <h2>{outcome.error ? <span class="bad">Failed</span> : 'Result'} <span class="soft">{duration(outcome.took)}</span> {may('read') && <a href={`#/traces/${outcome.trace}`}>trace</a>}</h2>
          {outcome.error ? <pre class="bad">{outcome.error}</pre> : <Result result={outcome.result!} />}
        </section>
      )}
    </>
  )
}

/** All arguments as one JSON object. */
function RawArguments({ text, change, values, problems }: { text: string; change: (text: string) => void; values: (v: Values) => void; problems: Problems }) {
  const wrong = Object.entries(problems)
  return (
    <>
      <label for="raw-arguments">Arguments as JSON</label>
      <textarea id="raw-arguments" aria-invalid={wrong.length > 0 ? 'true' : undefined} aria-describedby="raw-problems" rows={8} spellcheck={false} value={text} onInput={(e) => {
        const field = e.currentTarget
        change(field.value)
        try {
          const read = JSON.parse(field.value || '{}') as unknown
          if (typeof read !== 'object' || read === null || Array.isArray(read)) throw new Error('an object is needed')
          values(read as Values)
          field.setCustomValidity('')
        } catch (error) {
          field.setCustomValidity(`not JSON: ${(error as Error).message}`)
        }
      }} />
      <div id="raw-problems">{wrong.map(([name, problem]) => <p key={name} class="bad small problem" role="alert"><code>{name}</code>: {problem}</p>)}</div>
    </>
  )
}

/** The last calls of a tool, by anybody, with their traces. */
function LastCalls({ name }: { name: string }) {
  const traces = useData((s) => (may('read') ? get<{ traces: Trace[] }>('/api/v1/traces?limit=1000', s) : Promise.resolve({ traces: [] })), [name], ['tool.call_ended'])
  const calls = useData((s) => (may('read') ? loadCalls('1h', s) : Promise.resolve(undefined)), [name], ['tool.call_ended'])
  const hour = calls.data?.tools.find((t) => t.name === name)
  const list = traces.data?.traces.filter((t) => t.tools?.includes(name) || t.name === `tools/call ${name}`).slice(0, 15)
  return (
    <section class="panel" aria-label="Last calls">
      <h2>Last calls{hour && <span> of {count(hour.calls, 'call')} in an hour{hour.errors > 0 && <>, <span class="bad">{count(hour.errors, 'error')}</span></>}, {size(hour.bytes)} of results</span>}</h2>
      {list?.length === 0 && <Hint>None among the recent traces.</Hint>}
      <ul class="list" aria-label="Last calls">
        {list?.map((t) => <li key={t.trace_id} class="row spread"><a href={`#/traces/${t.trace_id}`}>{t.name.replace('tools/call ', '')}</a>{t.failed && <span class="bad">failed</span>}<span class="soft">{duration(t.duration_ns / 1e6)}, {ago(t.start)}</span></li>)}
      </ul>
    </section>
  )
}
