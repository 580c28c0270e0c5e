// Tools, as the administration API lists them, and actions on them.
import { get, post } from './api'
import type { Schema } from './mcp'
import { notify } from './parts/notices'

export interface ToolGroup {
  server: string
  tools: number
  tokens: number
  stale?: boolean
  disabled?: string[]
}

export interface ListedTool {
  name: string
  title?: string
  description: string
  tokens: number
  read_only?: boolean
  destructive?: boolean
  unmarked?: boolean
  original?: string
  exposed?: boolean
}

export interface ToolList {
  servers: ToolGroup[]
  total: number
  tokens: number
  tools?: ListedTool[]
}

/** The definition of a tool, as get_tool_definitions returns it. */
export interface Definition {
  name: string
  title?: string
  description: string
  lua_path: string
  input_schema: Schema
  output_schema?: Schema
  learned_output_schema?: Schema
  annotations?: Record<string, unknown>
  stale?: boolean
}

/** Events after which the tools may be others. */
export const toolEvents = ['catalog.', 'upstream.tools_refreshed', 'upstream.connected', 'upstream.removed', 'config.']

/** The servers and their numbers; with a server also its tools. */
export function loadTools(signal: AbortSignal, server = ''): Promise<ToolList> {
  return get<ToolList>(`/api/v1/tools${server ? `?server=${encodeURIComponent(server)}` : ''}`, signal)
}

/** One tool, as lists have it. */
export function loadTool(name: string, signal: AbortSignal): Promise<ListedTool> {
  return get<ListedTool>(`/api/v1/tools?name=${encodeURIComponent(name)}`, signal)
}

export interface ToolChange {
  disabled?: boolean
  alias?: string
  exposed?: boolean
}

interface ToolState {
  name: string
}

/** Changes a tool, and offers to take the change back. `changed` gets its name after that. */
export async function changeTool(name: string, change: ToolChange, back: ToolChange | undefined, done: string, changed: (name: string) => void): Promise<void> {
  try {
    const now = await post<ToolState>(`/api/v1/tools/${encodeURIComponent(name)}`, change, 'PATCH')
    notify('good', done, back && (() => void changeTool(now.name, back, undefined, `${name}: taken back`, changed)))
    changed(now.name)
  } catch (e) {
    notify('bad', (e as Error).message)
  }
}

/** A number of tokens, in thousands if it is large. */
export function tokens(n: number): string {
  return n < 1000 ? `${n} tokens` : `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)}k tokens`
}
