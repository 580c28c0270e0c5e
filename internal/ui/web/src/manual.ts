// The documentation in the program: its addresses, its parts, and which part is about a page.
import { get, request } from './api'

export interface Found {
  path: string
  anchor?: string
  page: string
  title: string
  excerpt?: string
}

export const find = (words: string, signal?: AbortSignal) => get<{ found: Found[] }>(`/api/v1/docs?find=${encodeURIComponent(words)}`, signal).then((a) => a.found)

export const pages = (signal?: AbortSignal) => get<{ pages: { path: string; title: string }[] }>('/api/v1/docs', signal).then((a) => a.pages)

/** The Markdown of a page. */
export async function pageText(path: string, signal?: AbortSignal): Promise<string> {
  const response = await request(`/api/v1/docs/${path}`, { signal })
  if (!response.ok) throw new Error(response.status === 404 ? `The documentation has no page ${path}.` : `the server responded with status ${response.status}`)
  return linked(await response.text(), path)
}

export const addressOf = (path: string, anchor?: string) => `#/docs/${path}${anchor ? `?at=${anchor}` : ''}`

/** Markdown whose links lead to pages here. Pictures are not in the program. */
export function linked(text: string, path: string): string {
  const folder = path.includes('/') ? path.replace(/[^/]+$/, '') : ''
  return text
    .replace(/^!\[.*\]\([^)]*\)\n?/gm, '')
    .replace(/^\|(\s*!\[[^|]*\|)+\s*$\n?/gm, '')
    .replace(/\]\((?!\w+:)([^)#\s]*?)(?:\.md)?(?:#([^)\s]*))?\)/g, (all, to: string, anchor?: string) => {
      if (to.startsWith('#') || to.startsWith('/')) return all
      if (!to) return anchor ? `](${addressOf(path, anchor)})` : all
      return `](${addressOf(resolve(folder + to), anchor)})`
    })
}

function resolve(path: string): string {
  const parts: string[] = []
  for (const p of path.split('/')) {
    if (p === '..') parts.pop()
    else if (p !== '.' && p !== '') parts.push(p)
  }
  return parts.join('/')
}

/** The name of a heading in links, as the server makes it. */
export const anchorOf = (title: string) => title.toLowerCase().replaceAll(' ', '-').replace(/[^\p{L}\p{N}_-]/gu, '')

/** The part of a page from a heading to the next one of its level; all of it without such a heading. */
export function part(text: string, anchor: string): string {
  const lines = text.split('\n')
  let code = false, from = -1, level = 0
  for (let i = 0; i < lines.length; i++) {
    if (lines[i].startsWith('```')) code = !code
    const heading = code ? null : /^(#+) (.*)/.exec(lines[i])
    if (!heading) continue
    if (from >= 0 && heading[1].length <= level) return lines.slice(from, i).join('\n')
    if (from < 0 && anchorOf(heading[2]) === anchor) [from, level] = [i, heading[1].length]
  }
  return from >= 0 ? lines.slice(from).join('\n') : text
}

/** What the documentation says about each page. */
export const about: Record<string, [path: string, anchor?: string]> = {
  overview: ['hud', 'overview-servers-and-tools'], servers: ['upstreams'], tools: ['search'], sets: ['sets'], prompts: ['upstreams', 'resources-and-prompts'], approvals: ['approvals'], playground: ['scripts'], library: ['modules', 'cas'], scripts: ['scripts'], artifacts: ['modules', 'cas'],
  jobs: ['jobs'], timeline: ['music'], chat: ['chat'], traces: ['hud', 'what-happened'], audit: ['audit'], organisation: ['organisations'], people: ['security'], you: ['people'], usage: ['chat'], settings: ['configuration'],
}
