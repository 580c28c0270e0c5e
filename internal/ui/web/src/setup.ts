// Adding servers to the configuration, and connecting clients.
import { signal } from '@preact/signals'
import { get, post } from './api'

export interface Setup {
  programs: boolean // whether this page may add programs
  file: string
  clients: ClientHelp[]
}

export interface ClientHelp {
  name: string
  title: string
  install: string
  command?: string
  file?: string
  snippet?: string
}

export interface Need {
  kind: string
  name: string
  description?: string
  default?: string
  choices?: string[]
  required?: boolean
  secret?: boolean
}

export interface Listing {
  name: string
  title?: string
  description: string
  version: string
  status?: string
  namespace: string
  runs?: string
  program: boolean
  needs: Need[]
  problem?: string
}

export interface Candidate {
  server: string
  name: string
  client: string
  file: string
  target: string
  state: string
  problem?: string
  inputs?: { id: string; description?: string; secret?: boolean }[]
}

/** A server that was added, and what its sandbox means. */
interface Added {
  namespace: string
  notes?: string[]
}

/** What was said about the servers that were added last, until somebody has read it. */
export const addedNotes = signal<Added[]>([])

/** Keeps what is said about new servers, and returns their names. */
function keepNotes(added: Added[]): string[] {
  addedNotes.value = added.filter((a) => a.notes && a.notes.length > 0)
  return added.map((a) => a.namespace)
}

export const loadSetup = (signal: AbortSignal) => get<Setup>('/api/v1/setup', signal)

export const searchRegistry = (words: string, signal: AbortSignal) => get<{ servers: Listing[]; total: number }>(`/api/v1/setup/registry?words=${encodeURIComponent(words)}`, signal)

export const addListed = (name: string, namespace: string, values: Record<string, Record<string, string>>) => post<Added>('/api/v1/setup/registry', { name, namespace, values }).then((a) => keepNotes([a])[0])

export const loadCandidates = async (signal: AbortSignal) => (await get<{ servers: Candidate[] }>('/api/v1/setup/import', signal)).servers

export const importServers = async (body: { names?: string[]; text?: string; inputs?: Record<string, string> }) => keepNotes((await post<{ added: Added[] }>('/api/v1/setup/import', body)).added)

export const addCommand = (namespace: string, command: string, env: Record<string, string>) => post<Added>('/api/v1/setup/servers', { namespace, command, env }).then((a) => keepNotes([a])[0])

/** The settings of a server, by their keys in the configuration file. In env and headers, null stands for a value that is not shown. */
export type ServerSettings = Record<string, unknown>

/** Adds a server by its settings. */
export const addServer = (namespace: string, settings: ServerSettings) => post<Added>('/api/v1/setup/servers', { namespace, settings }).then((a) => keepNotes([a])[0])

/** A server as the configuration file has it. */
export interface Definition {
  namespace: string
  file: string
  place: string
  command: string // as in a shell; empty if it is no program
  settings: ServerSettings
}

const definitionPath = (name: string) => `/api/v1/setup/servers/${encodeURIComponent(name)}`

export const loadDefinition = (name: string, signal?: AbortSignal) => get<Definition>(definitionPath(name), signal)

/** Changes a server in the configuration file; null removes a setting. */
export const changeDefinition = (name: string, body: { command?: string; settings?: ServerSettings }) => post<{ namespace: string }>(definitionPath(name), body, 'PATCH')

/** The ways to add a server that a text can be meant for. */
export type Kind = 'url' | 'command' | 'api'

/** APIs that are no MCP servers, by the key of their address in the configuration. */
export const apiKinds: Record<string, { title: string; label: string; placeholder: string; looksLike: RegExp }> = {
  openapi: { title: 'OpenAPI or Swagger', label: 'URL or file of the document', placeholder: 'https://api.example.org/openapi.json', looksLike: /\.(json|ya?ml)([?#]|$)|openapi|swagger|api-docs/i },
  graphql: { title: 'GraphQL', label: 'URL of the service', placeholder: 'https://shop.example.org/graphql', looksLike: /^https?:.*\/graphql\b/i },
  grpc: { title: 'gRPC', label: 'Address of the service', placeholder: 'orders.example.org:443', looksLike: /^[\w.-]+:\d+$/ },
}

/** What a pasted text is: a URL of an MCP server, the document or address of an API, or a command. */
export function kindOf(text: string): Kind | undefined {
  const t = text.trim()
  if (t.startsWith('{') || /^(npx|uvx|docker|podman|node|python3?|bunx|deno|pnpm|yarn)\s/.test(t)) return 'command'
  if (apiKindOf(t) && (/^https?:\/\//.test(t) || /^[~./]/.test(t) || apiKindOf(t) === 'grpc')) return 'api'
  if (/^(https?|zmq\+tcp):\/\//.test(t)) return 'url'
  return undefined
}

/** Which kind of API an address looks like. */
export const apiKindOf = (text: string) => Object.keys(apiKinds).find((key) => apiKinds[key].looksLike.test(text.trim()))

/** A name for the server at a URL or in a file: the part of the host that says most, or the name of the file. */
export function nameOfAddress(text: string): string {
  const t = text.trim()
  const host = /^[a-z+]+:\/\/([^/:?#]+)/i.exec(t)?.[1]
  const parts = (host ?? t.split(/[/\\]/).pop()?.replace(/\.\w+$/, '') ?? '').split('.').filter((p) => !/^(www|api|mcp|com|org|net|io|dev|ai|app|co|\d+)$/.test(p))
  return (parts[0] ?? '').replace(/[^A-Za-z0-9_-]/g, '-').replace(/^[^A-Za-z]+/, '').slice(0, 40)
}

/** A name for the server that a command starts: the last word that looks like a package or program. */
export function nameOf(command: string): string {
  const words = command.replace(/['"]/g, '').split(/\s+/).filter((w) => /[a-z]/i.test(w) && !w.startsWith('-') && !/^(npx|uvx|docker|run|node|python3?|bunx|exec|dlx|pnpm|yarn|deno)$/.test(w))
  const last = (words[0] ?? '').replace(/@[\w.]+$/, '').split(/[/\\]/).pop() ?? ''
  return last.replace(/\.\w+$/, '').replace(/^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$/g, '').replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 40)
}
