// Completion in the editor: modules and their functions, servers, tools, the arguments of
// a tool and the fields of its result.
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { call, type Schema } from '../mcp'

export async function complete(context: CompletionContext, lua: boolean): Promise<CompletionResult | null> {
  const before = context.state.sliceDoc(0, context.pos)
  const path = context.matchBefore(/[A-Za-z_][\w.]*/)
  const within = argumentsOf(before)
  if (within && (!path || !path.text.includes('.'))) {
    const from = path?.from ?? context.pos
    if (path || context.explicit || /[{,]\s*$/.test(before)) return { from, options: await argumentNames(within, lua) }
  }
  if (!path || (path.from === path.to && !context.explicit)) return null
  const parts = path.text.split('.')
  const from = path.to - parts[parts.length - 1].length
  if (parts[0] === 'mcp' && parts.length === 2) return { from, options: await spaces() }
  if (parts[0] === 'mcp' && parts.length === 3) return { from, options: await toolsOf(parts[1]) }
  const source = parts.length > 1 && resultOf(before.slice(0, path.from), parts[0])
  if (source) return { from, options: await resultFields(source, parts.slice(1, -1)) }
  if (parts.length === 2) return { from, options: await functionsOf(parts[0]) }
  return parts.length === 1 ? { from, options: await modules() } : null
}

/** The tool whose table of arguments the cursor is in, and the names that it has already. */
export function argumentsOf(before: string): { tool: string; used: string[] } | undefined {
  let depth = 0
  for (let i = before.length - 1; i >= 0 && before.length - i < 4000; i--) {
    if ('})]'.includes(before[i])) depth++
    else if ('{(['.includes(before[i]) && depth-- === 0) {
      if (before[i] !== '{') return undefined
      const tool = /\bmcp\.(\w+\.\w+)\s*\(?\s*$/.exec(before.slice(0, i))?.[1]
      const open = before.slice(i + 1)
      if (!tool || /[=:]\s*\S*$/.test(open.slice(open.lastIndexOf(',') + 1))) return undefined // a value, not a name
      return { tool, used: [...open.matchAll(/(\w+)\s*[=:]/g)].map((m) => m[1]) }
    }
  }
  return undefined
}

/** The tool whose result a variable has. */
export function resultOf(before: string, variable: string): string | undefined {
  const assigned = new RegExp(`\\b${variable}\\s*(?::[^=\\n]+)?=\\s*(?:await\\s+)?mcp\\.(\\w+\\.\\w+)\\s*[({]`, 'g')
  return [...before.matchAll(assigned)].pop()?.[1]
}

interface Definition {
  input_schema: Schema
  output_schema?: Schema
  learned_output_schema?: Schema
}

const known = new Map<string, Promise<unknown>>()

/** Loads once and caches the result. */
function once<T>(key: string, load: () => Promise<T>, failed: T): Promise<T> {
  let answer = known.get(key) as Promise<T> | undefined
  if (!answer) {
    answer = load().catch(() => {
      known.delete(key)
      return failed
    })
    known.set(key, answer)
  }
  return answer
}

function definition(tool: string): Promise<Definition | undefined> {
  return once(`tool ${tool}`, async () => (await call<{ tools: Definition[] }>('get_tool_definitions', { names: [tool] })).tools[0], undefined)
}

const typeOf = (s: Schema) => [s.type ?? (s.enum ? s.enum.map((v) => JSON.stringify(v)).join(' | ') : '')].flat().join(' | ')

async function argumentNames({ tool, used }: { tool: string; used: string[] }, lua: boolean): Promise<Completion[]> {
  const schema = (await definition(tool))?.input_schema
  return Object.entries(schema?.properties ?? {}).filter(([name]) => !used.includes(name)).map(([name, s]) => ({
    label: name, type: 'property', detail: `${typeOf(s)}${schema?.required?.includes(name) ? ', required' : ''}`, info: s.description, apply: lua ? `${name} = ` : `${name}: `, boost: schema?.required?.includes(name) ? 1 : 0,
  }))
}

async function resultFields(tool: string, path: string[]): Promise<Completion[]> {
  const found = await definition(tool)
  let schema = found?.output_schema ?? found?.learned_output_schema
  for (const name of path) schema = schema?.properties?.[name]
  return Object.entries(schema?.properties ?? {}).map(([label, s]) => ({ label, type: 'property', detail: typeOf(s), info: s.description }))
}

function modules(): Promise<Completion[]> {
  return once('', async () => (await call<{ topics: string[] }>('lua_help')).topics.map((label) => ({ label, type: 'namespace' })), [])
}

function functionsOf(module: string): Promise<Completion[]> {
  return once(`help ${module}`, async () => {
    const { page } = await call<{ page: string }>('lua_help', { topic: module })
    return [...page.matchAll(/^## (\w+)\.(\w+)(.*)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm)]
      .filter((m) => m[1] === module)
      .map((m) => ({ label: m[2], type: 'function', detail: m[3], info: m[4].trim() }))
  }, [])
}

function spaces(): Promise<Completion[]> {
  return call<{ upstreams: { namespace: string; endpoint: string }[] }>('mcp_list_upstreams').then(
    ({ upstreams }) => upstreams.map((u) => ({ label: u.namespace, type: 'namespace', detail: u.endpoint })),
    () => [],
  )
}

function toolsOf(namespace: string): Promise<Completion[]> {
  return call<{ tools: { name: string; signature: string; description: string }[] }>('search_tools', { query: '', namespace, limit: 100 }).then(
    ({ tools }) => tools.map((t) => ({ label: t.name.slice(namespace.length + 1), type: 'function', detail: t.signature, info: t.description })),
    () => [],
  )
}
