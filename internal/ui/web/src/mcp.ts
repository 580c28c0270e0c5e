// The page is an MCP client: it acts by calling tools.
import { request as send } from './api'
import { parseExact } from './json'

const revision = '2026-07-28'
let lastID = 0

export class ToolError extends Error {
  constructor(message: string, readonly result?: ToolResult) {
    super(message)
  }
}

export interface Content {
  type: string
  text?: string
  data?: string
  mimeType?: string
  [key: string]: unknown
}

export interface ToolResult {
  content?: Content[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Record<string, unknown>
}

export interface Tool {
  name: string
  title?: string
  description?: string
  inputSchema: Schema
  outputSchema?: Schema
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean }
}

export interface Schema {
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  [key: string]: unknown
}

/** A new trace id; requests that carry it belong to that trace. */
export function newTrace(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')
}

/** Sends one JSON-RPC request and returns its result. */
export async function request<T>(method: string, params: Record<string, unknown> = {}, signal?: AbortSignal, trace?: string): Promise<T> {
  const id = ++lastID
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': revision,
    'Mcp-Method': method,
  }
  const named = params.name ?? params.uri
  if (typeof named === 'string') headers['Mcp-Name'] = headerSafe(named)
  if (trace) headers.traceparent = `00-${trace}-${newTrace().slice(16)}-01`
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': revision,
        'io.modelcontextprotocol/clientInfo': { name: 'luanette-hud', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
        'luanette/full': true, // results are not shortened
      },
    },
  })
  const response = await send('/mcp', { method: 'POST', headers, body, signal })
  const message = await readMessage(response, id)
  if (message.error) throw new ToolError(message.error.message)
  return message.result as T
}

interface Message {
  id?: number
  result?: unknown
  error?: { code: number; message: string }
}

async function readMessage(response: Response, id: number): Promise<Message> {
  const text = await response.text()
  if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
    try {
      return parseExact<Message>(text)
    } catch {
      throw new ToolError(`the server responded with status ${response.status}: ${text.slice(0, 200)}`)
    }
  }
  for (const line of text.split('\n')) {
    if (!line.startsWith('data:')) continue
    const message = parseExact<Message>(line.slice(5))
    if (message.id === id) return message
  }
  throw new ToolError('the server closed the connection before its response')
}

function headerSafe(name: string): string {
  return /^[\x21-\x7e]+$/.test(name) ? name : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(name)))}?=`
}

/** Calls a tool and returns its whole result; throws if the tool failed. */
export async function callRaw(name: string, args: unknown = {}, signal?: AbortSignal, trace?: string): Promise<ToolResult> {
  const result = await request<ToolResult>('tools/call', { name, arguments: args }, signal, trace)
  if (result.isError) throw new ToolError(textOf(result) || 'the tool failed', result)
  return result
}

/** Calls a tool of the server and returns its structured content. */
export async function call<T>(name: string, args: unknown = {}, signal?: AbortSignal, trace?: string): Promise<T> {
  return (await callRaw(name, args, signal, trace)).structuredContent as T
}

export function textOf(result: ToolResult): string {
  return (result.content ?? []).map((c) => c.text ?? '').filter(Boolean).join('\n')
}
