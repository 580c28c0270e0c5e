// What a script says of its parameters, asked without running anything for real.
import { call, type Schema } from '../mcp'
import type { Draft } from './draft'
import { ranAs } from './run'

interface Param {
  type?: string
  description?: string
  required?: boolean
  default?: unknown
  enum?: unknown[]
  items?: string | Schema
}

/** Whether a script has a main function, which is called with its parameters. */
export function hasMain(code: string): boolean {
  return /\bfunction\s+main\b|\bmain\s*(:[^=\n]+)?=\s*(async\s*)?(function|\()/.test(code)
}

/** The schema of the parameters that describe() names, or undefined. */
export async function parameters(draft: Draft, signal: AbortSignal): Promise<Schema | undefined> {
  if (!hasMain(draft.code) || !/\bdescribe\b/.test(draft.code)) return undefined
  const { result } = await call<{ result?: { params?: Record<string, Param> } }>('lua_preview', { code: `${draft.code}\nreturn describe()`, language: ranAs(draft.language) }, signal)
  return result?.params && !Array.isArray(result.params) ? schemaOf(result.params) : undefined
}

function schemaOf(params: Record<string, Param>): Schema {
  const properties = Object.fromEntries(Object.entries(params).map(([name, p]): [string, Schema] => [name, {
    ...(p.type && { type: p.type }), ...(p.description && { description: p.description }), ...(p.enum && { enum: p.enum }),
    ...(p.default !== undefined && { default: p.default }), ...(p.items && { items: typeof p.items === 'string' ? { type: p.items } : p.items }),
  }]))
  return { type: 'object', properties, required: Object.keys(params).filter((name) => params[name].required) }
}
