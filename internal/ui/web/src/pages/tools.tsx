import { useEffect, useState } from 'preact/hooks'
import { call, callRaw, ToolError, type Schema, type ToolResult } from '../mcp'
import { useData } from '../resource'
import { count, duration } from '../format'
import { Form, type Values } from '../parts/form'
import { Hint } from '../parts/hint'
import { Result } from '../parts/result'
import { Json } from '../parts/json'
import { Copy } from '../parts/copy'

interface Found {
  name: string
  signature: string
  description: string
  read_only?: boolean
  stale?: boolean
}

interface Definition {
  name: string
  title?: string
  description: string
  lua_path: string
  input_schema: Schema
  output_schema?: Schema
  learned_output_schema?: Schema
}

/** Searches all tools, and tries one of them. */
export function Tools({ rest }: { rest: string }) {
  const [query, setQuery] = useState('')
  const found = useData((s) => call<{ tools: Found[]; total: number }>('search_tools', { query, limit: 100 }, s), [query], ['catalog.', 'upstream.tools_refreshed'])
  return (
    <div class={rest ? 'split tools chosen' : 'split tools'}>
      <section class="menu" aria-label="Search">
        <label for="search">Search by name or description</label>
        <input id="search" type="search" class="wide" value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        {found.error && <p class="bad">{found.error.message}</p>}
        <p class="soft" role="status">{found.data && (found.data.total > found.data.tools.length ? `${found.data.tools.length} of ${found.data.total}; search to find more` : count(found.data.total, 'tool'))}</p>
        {found.data?.tools.length === 0 && <Hint>{query ? 'No tool matches. Try other words.' : 'No tools yet. Connect a server on the Servers page.'}</Hint>}
        <ul class="list">
          {found.data?.tools.map((t) => (
            <li key={t.name}>
              <a href={`#/tools/${encodeURIComponent(t.name)}`} aria-current={t.name === rest ? 'true' : undefined}>{t.name}</a>
              {t.read_only && <span class="tag at soft">read-only</span>}
              {t.stale && <span class="tag at warn">disconnected</span>}
              <div class="soft brief">{t.description}</div>
            </li>
          ))}
        </ul>
      </section>
      <section aria-label="Tool">{rest ? <><p class="back"><a href="#/tools">All tools</a></p><OneTool key={rest} name={rest} /></> : <Hint>Select a tool to see its arguments and to try it.</Hint>}</section>
    </div>
  )
}

function OneTool({ name }: { name: string }) {
  const { data, error } = useData((s) => call<{ tools: Definition[] }>('get_tool_definitions', { names: [name] }, s), [name])
  const tool = data?.tools[0]
  if (error) return <p class="bad">{error.message}</p>
  if (data && !tool) return <p class="bad">There is no tool named {name}.</p>
  return tool ? <Try tool={tool} /> : <p class="soft">…</p>
}

function Try({ tool }: { tool: Definition }) {
  const [values, setValues] = useState<Values>({})
  const [running, setRunning] = useState<AbortController>()
  const [outcome, setOutcome] = useState<{ result?: ToolResult; error?: string; took: number }>()
  useEffect(() => () => running?.abort(), [running])
  const run = async () => {
    const control = new AbortController()
    const began = performance.now()
    setRunning(control)
    try {
      const result = await callRaw('call_tool', { name: tool.name, arguments: values }, control.signal)
      setOutcome({ result, took: performance.now() - began })
    } catch (e) {
      setOutcome({ error: (e as Error).message, result: e instanceof ToolError ? e.result : undefined, took: performance.now() - began })
    }
    setRunning(undefined)
  }
  return (
    <>
      <h2>{tool.title ?? tool.name}</h2>
      <p class="mono soft">{tool.name}</p>
      <p class="prose">{tool.description}</p>
      <form onSubmit={(e) => { e.preventDefault(); void run() }}>
        <Form schema={tool.input_schema} values={values} change={setValues} />
        <div class="row actions">
          <button class="main" type="submit" disabled={running !== undefined}>Try it</button>
          {running && <button type="button" onClick={() => running.abort()}>Stop</button>}
          <Copy text={asLua(tool, values)}>Copy as Lua</Copy>
          <Copy text={asJavaScript(tool, values)}>Copy as JavaScript</Copy>
          <Copy text={asCurl(tool, values)}>Copy as curl</Copy>
        </div>
      </form>
      {outcome && (
        <section aria-label="Result" aria-live="polite">
          <h3>{outcome.error ? <span class="bad">Failed</span> : 'Result'} <span class="soft">{duration(outcome.took)}</span></h3>
          {outcome.error ? <pre class="bad">{outcome.error}</pre> : <Result result={outcome.result!} />}
        </section>
      )}
      <details><summary>Schemas</summary>
        <h3>Arguments</h3><Json value={tool.input_schema} />
        {tool.output_schema && <><h3>Result</h3><Json value={tool.output_schema} /></>}
        {tool.learned_output_schema && <><h3>Result, learned from calls</h3><Json value={tool.learned_output_schema} /></>}
      </details>
    </>
  )
}

const word = /^[A-Za-z_][A-Za-z0-9_]*$/

function asLua(tool: Definition, values: Values): string {
  return `return ${tool.lua_path}${luaValue(values)}`
}

function luaValue(v: unknown): string {
  if (v === null) return 'json.null'
  if (Array.isArray(v)) return v.length === 0 ? 'json.array{}' : `{${v.map(luaValue).join(', ')}}`
  if (typeof v === 'object') return `{${Object.entries(v as object).map(([k, x]) => `${word.test(k) ? k : `[${JSON.stringify(k)}]`} = ${luaValue(x)}`).join(', ')}}`
  return JSON.stringify(v)
}

function asJavaScript(tool: Definition, values: Values): string {
  const [namespace, ...name] = tool.name.split('.')
  const path = [namespace, name.join('.')].map((part) => (word.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`)).join('')
  return `return await mcp${path}(${JSON.stringify(values)})`
}

function asCurl(tool: Definition, values: Values): string {
  const body = JSON.stringify({
    jsonrpc: '2.0', id: 1, method: 'tools/call',
    params: {
      name: 'call_tool', arguments: { name: tool.name, arguments: values },
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'curl', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} },
    },
  })
  return `curl ${location.origin}/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: call_tool' \\
  -d '${body.replaceAll("'", "'\\''")}'`
}
