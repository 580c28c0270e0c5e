// Adding servers to the configuration, and connecting clients.
import { CodeNeeded, get, post } from './api'
import { askForCode } from './parts/code'

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

const stored = 'luanette.code'

/**
 * Sends a change that may start a program. A server without keys wants to know that it
 * comes from its user: the code is asked for once in each tab.
 */
async function change<T>(path: string, body: unknown): Promise<T> {
  for (;;) {
    try {
      return await post<T>(path, body, 'POST', { 'Luanette-Code': sessionStorage.getItem(stored) ?? '' })
    } catch (e) {
      if (!(e instanceof CodeNeeded)) throw e
      sessionStorage.setItem(stored, await askForCode(sessionStorage.getItem(stored) ? 'This is not the code.' : ''))
    }
  }
}

export const loadSetup = (signal: AbortSignal) => get<Setup>('/api/v1/setup', signal)

export const searchRegistry = (words: string, signal: AbortSignal) => get<{ servers: Listing[]; total: number }>(`/api/v1/setup/registry?words=${encodeURIComponent(words)}`, signal)

export const addListed = (name: string, namespace: string, values: Record<string, Record<string, string>>) => change<{ namespace: string }>('/api/v1/setup/registry', { name, namespace, values })

export const loadCandidates = async (signal: AbortSignal) => (await get<{ servers: Candidate[] }>('/api/v1/setup/import', signal)).servers

export const importServers = async (body: { names?: string[]; text?: string; inputs?: Record<string, string> }) => (await change<{ added: { namespace: string }[] }>('/api/v1/setup/import', body)).added.map((a) => a.namespace)

export const addCommand = (namespace: string, command: string, env: Record<string, string>) => change<{ namespace: string }>('/api/v1/setup/servers', { namespace, command, env })

/** A name for the server that a command starts: the last word that looks like a package or program. */
export function nameOf(command: string): string {
  const words = command.replace(/['"]/g, '').split(/\s+/).filter((w) => /[a-z]/i.test(w) && !w.startsWith('-') && !/^(npx|uvx|docker|run|node|python3?|bunx|exec|dlx|pnpm|yarn|deno)$/.test(w))
  const last = (words[0] ?? '').replace(/@[\w.]+$/, '').split(/[/\\]/).pop() ?? ''
  return last.replace(/\.\w+$/, '').replace(/^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$/g, '').replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 40)
}
