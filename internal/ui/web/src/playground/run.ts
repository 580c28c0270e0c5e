// Running what is in the editor.
import { call, ToolError } from '../mcp'
import type { Language } from '../parts/editor'
import type { OutputLine } from '../parts/output'
import type { Planned } from '../parts/plan'

/** Why a run failed, and where in the script. */
export interface Failure {
  message: string
  line?: number
  column?: number
}

export interface Run {
  kind: 'run' | 'preview'
  error?: Failure
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

/** The language of a run: the types of TypeScript are removed by the server. */
export const ranAs = (language: Language) => (language === 'lua' ? 'lua' : 'javascript')

export function evaluate(code: Code, signal?: AbortSignal, trace?: string): Promise<Answer> {
  return call('lua_eval', { ...code, language: ranAs(code.language) }, signal, trace)
}

export function preview(code: Code, signal?: AbortSignal, trace?: string): Promise<Answer> {
  return call('lua_preview', { ...code, language: ranAs(code.language) }, signal, trace)
}

interface FailedMeta {
  'luanette/error'?: { details?: { line?: number; column?: number; message?: string } }
  'luanette/output'?: OutputLine[]
}

/** What an error tells of a run: its message, its place in the script, and the output before it. */
export function failed(e: unknown): Answer {
  const meta = (e instanceof ToolError ? e.result?._meta : undefined) as FailedMeta | undefined
  const { line, column } = meta?.['luanette/error']?.details ?? {}
  return { error: { message: (e as Error).message, line, column }, output: meta?.['luanette/output'] }
}

const listGlobals: Record<'lua' | 'javascript', string> = {
  lua: 'local all = {} for name, value in pairs(_G) do if type(name) == "string" then local text = repr(value):sub(1, 80) all[name] = type(value) ~= "function" and utf8.len(text) and text or type(value) end end return all',
  javascript: 'return Object.fromEntries(Object.keys(globalThis).map(k => [k, typeof globalThis[k] === "function" ? "function" : String(JSON.stringify(globalThis[k])).slice(0, 80)]))',
}

/** The variables of a session that a new session does not have. They are read in copies. */
export async function globals(language: Language, session: string): Promise<Record<string, string>> {
  const load = async (session_id?: string) => ((await preview({ code: listGlobals[ranAs(language)], language, session_id })).result ?? {}) as Record<string, string>
  const [fresh, now] = await Promise.all([load(), load(session)])
  return Object.fromEntries(Object.entries(now).filter(([k]) => !(k in fresh)).sort())
}
