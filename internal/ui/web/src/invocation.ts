// A call of a tool as text to copy: a command, or code of a script.
import type { Values } from './parts/form'
import type { Definition } from './tools'
import { home } from './api'

const word = /^[A-Za-z_][A-Za-z0-9_]*$/

export function asLua(tool: Definition, values: Values): string {
  return `return ${tool.lua_path}${luaValue(values)}`
}

function luaValue(v: unknown): string {
  if (v === null) return 'json.null'
  if (Array.isArray(v)) return v.length === 0 ? 'json.array{}' : `{${v.map(luaValue).join(', ')}}`
  if (typeof v === 'object') return `{${Object.entries(v as object).map(([k, x]) => `${word.test(k) ? k : `[${JSON.stringify(k)}]`} = ${luaValue(x)}`).join(', ')}}`
  return JSON.stringify(v)
}

export function asJavaScript(tool: Definition, values: Values): string {
  const [namespace, ...name] = tool.name.split('.')
  const path = [namespace, name.join('.')].filter(Boolean).map((part) => (word.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`)).join('')
  return `return await mcp${path}(${JSON.stringify(values)})`
}

/** A text as one word of a shell. */
function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

export function asCommand(tool: Definition, values: Values): string {
  const args = Object.entries(values).map(([name, value]) => quote(typeof value === 'string' ? `${name}=${value}` : `${name}:=${JSON.stringify(value)}`))
  return ['luanette', 'call', '--server', home(), quote(tool.name), ...args].join(' ')
}

export function asCurl(tool: Definition, values: Values): string {
  const body = JSON.stringify({
    jsonrpc: '2.0', id: 1, method: 'tools/call',
    params: {
      name: 'call_tool', arguments: { name: tool.name, arguments: values },
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'curl', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} },
    },
  })
  return `curl ${home()}/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
  -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: call_tool' \\
  -d ${quote(body)}`
}
