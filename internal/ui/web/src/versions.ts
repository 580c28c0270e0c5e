// The versions of a script: what was published under its name, its ancestors and children.
import { call } from './mcp'

export interface Version {
  hash: string
  label: string
}

export async function versionsOf(hash: string, signal: AbortSignal): Promise<Version[]> {
  const script = await call<{ name?: string; ancestors: string[]; children: string[] }>('script_get', { script_hash: hash }, signal)
  // A script that was never published has no history; that is not an error.
  const history = script.name ? await call<{ versions: { version: number; hash: string; current?: boolean }[] }>('script_history', { name: script.name }, signal).catch(() => undefined) : undefined
  const found = new Map<string, string>()
  for (const v of history?.versions ?? []) found.set(v.hash, `version ${v.version}${v.current ? ', published' : ''}`)
  for (const h of script.children) if (!found.has(h)) found.set(h, `newer, ${h.slice(0, 12)}`)
  for (const h of script.ancestors) if (!found.has(h)) found.set(h, `older, ${h.slice(0, 12)}`)
  return [...found].map(([h, label]) => ({ hash: h, label }))
}

export async function sourceOf(script_hash: string, signal?: AbortSignal): Promise<string> {
  return (await call<{ content: string }>('script_get', { script_hash }, signal)).content
}
