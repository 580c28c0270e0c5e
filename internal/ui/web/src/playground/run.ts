// Running what is in the editor.
import { call } from '../mcp'
import type { Language } from '../parts/editor'
import type { OutputLine } from '../parts/output'
import type { Planned } from '../parts/plan'

export interface Run {
  kind: 'run' | 'preview'
  error?: string | { message: string }
  result?: unknown
  output?: OutputLine[]
  plan?: Planned[]
  certain?: boolean
  status?: string
  complete?: boolean
  took: number
  trace: string
}

/** The answer of the server to a run or a preview. */
export type Answer = Omit<Run, 'kind' | 'took' | 'trace'>

export interface Code {
  code: string
  language: Language
  params?: Record<string, unknown> // of main
  session_id?: string
}

export function evaluate(code: Code, signal?: AbortSignal, trace?: string): Promise<Answer> {
  return call('lua_eval', code, signal, trace)
}

export function preview(code: Code, signal?: AbortSignal, trace?: string): Promise<Answer> {
  return call('lua_preview', code, signal, trace)
}

const listGlobals: Record<Language, string> = {
  lua: 'local all = {} for name, value in pairs(_G) do if type(name) == "string" then local text = repr(value):sub(1, 80) all[name] = type(value) ~= "function" and utf8.len(text) and text or type(value) end end return all',
  javascript: 'return Object.fromEntries(Object.keys(globalThis).map(k => [k, typeof globalThis[k] === "function" ? "function" : String(JSON.stringify(globalThis[k])).slice(0, 80)]))',
}

/** The variables of a session that a new session does not have. */
export async function globals(language: Language, session: string): Promise<Record<string, string>> {
  const load = async (session_id?: string) => ((await evaluate({ code: listGlobals[language], language, session_id })).result ?? {}) as Record<string, string>
  const [fresh, now] = await Promise.all([load(), load(session)])
  return Object.fromEntries(Object.entries(now).filter(([k]) => !(k in fresh)).sort())
}
