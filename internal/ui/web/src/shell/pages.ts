// Every page, in the groups of the side bar.
import type { ComponentType } from 'preact'
import { may, me } from '../api'
import { Overview } from '../pages/overview'
import { lazy, whenIdle, type Lazy } from './lazy'

/** What a page gets: the rest of its address. */
interface Address {
  rest: string
}

export interface Page {
  path: string
  title: string
  key: string // g and this key open it
  view: ComponentType<Address>
  scope?: string // the scope that it needs, beside read
  shown?: () => boolean // whether it is of use here
  off?: string // why it is not, if something is to be switched on
  hidden?: boolean // not in the side bar: the help leads to it
  within?: string // the page whose entry of the side bar it belongs to
}

export interface Group {
  title?: string
  pages: Page[]
}

/** The pages that are loaded when they are opened, or when there is time. The overview is there from the start. */
const later = {
  servers: lazy<Address>(() => import('../pages/connected').then((m) => m.Servers)),
  tools: lazy<Address>(() => import('../pages/connected').then((m) => m.Tools)),
  prompts: lazy<Address>(() => import('../pages/connected').then((m) => m.Prompts)),
  sets: lazy<Address>(() => import('../pages/connected').then((m) => m.Sets)),
  approvals: lazy<Address>(() => import('../pages/connected').then((m) => m.Approvals)),
  playground: lazy<Address>(() => import('../pages/build').then((m) => m.Playground)),
  artifacts: lazy<Address>(() => import('../pages/build').then((m) => m.Artifacts)),
  scripts: lazy<Address>(() => import('../pages/build').then((m) => m.Scripts)),
  jobs: lazy<Address>(() => import('../pages/build').then((m) => m.Jobs)),
  timeline: lazy<Address>(() => import('../pages/build').then((m) => m.Timeline)),
  chat: lazy<Address>(() => import('../pages/chat').then((m) => m.Chat)),
  activity: lazy<Address>(() => import('../pages/activity').then((m) => m.Activity)),
  traces: lazy<Address>(() => import('../pages/traces').then((m) => m.Traces)),
  audit: lazy<Address>(() => import('../pages/manage').then((m) => m.Audit)),
  organisation: lazy<Address>(() => import('../pages/manage').then((m) => m.Organisation)),
  people: lazy<Address>(() => import('../pages/manage').then((m) => m.People)),
  you: lazy<Address>(() => import('../pages/manage').then((m) => m.You)),
  usage: lazy<Address>(() => import('../pages/manage').then((m) => m.Usage)),
  settings: lazy<Address>(() => import('../pages/manage').then((m) => m.Settings)),
  docs: lazy<Address>(() => import('../pages/docs').then((m) => m.Docs)),
}

export const groups: Group[] = [
  {
    pages: [
      { path: 'overview', title: 'Overview', key: 'o', view: Overview },
      { path: 'activity', title: 'Activity', key: 'v', view: later.activity },
      { path: 'jobs', title: 'Jobs', key: 'j', view: later.jobs, within: 'activity' },
      { path: 'traces', title: 'Traces', key: 'r', view: later.traces, within: 'activity' },
      { path: 'audit', title: 'Audit', key: 'u', view: later.audit, scope: 'admin', within: 'activity' },
      { path: 'approvals', title: 'Approvals', key: 'a', view: later.approvals },
      { path: 'chat', title: 'Chat', key: 'h', view: later.chat },
    ],
  },
  {
    title: 'Connect',
    pages: [
      { path: 'servers', title: 'Servers', key: 's', view: later.servers },
      { path: 'tools', title: 'Tools', key: 't', view: later.tools },
      { path: 'prompts', title: 'Prompts and resources', key: 'w', view: later.prompts, within: 'tools' },
      { path: 'sets', title: 'Sets of tools', key: 'e', view: later.sets, scope: 'admin', within: 'tools' },
    ],
  },
  {
    title: 'Build',
    pages: [
      { path: 'playground', title: 'Playground', key: 'p', view: later.playground },
      { path: 'library', title: 'Library', key: 'l', view: later.artifacts },
      { path: 'scripts', title: 'Scripts', key: 'c', view: later.scripts, within: 'library' },
      { path: 'artifacts', title: 'Artifacts', key: 'f', view: later.artifacts, within: 'library' },
      { path: 'timeline', title: 'Timeline', key: 'm', view: later.timeline, shown: () => !!me.value?.has?.includes('music'), off: 'The timeline plays what the music tools make. They are off here: set `enabled = true` in `[music]` of luanette.toml, and start the server again.' },
    ],
  },
  {
    title: 'Manage',
    pages: [
      { path: 'you', title: 'You', key: 'i', view: later.you },
      { path: 'organisation', title: 'Organisation', key: 'n', view: later.organisation, scope: 'org', shown: () => !me.value?.open },
      { path: 'people', title: 'People and keys', key: 'k', view: later.people, scope: 'admin' },
      { path: 'usage', title: 'Usage', key: 'y', view: later.usage, scope: 'chat' },
      { path: 'settings', title: 'Settings', key: ',', view: later.settings },
      { path: 'docs', title: 'Documentation', key: 'd', view: later.docs, hidden: true },
    ],
  },
]

/** The pages that this user may see. */
export function visiblePages(): Page[] {
  return groups.flatMap((g) => g.pages).filter(isVisible)
}

export function isVisible(page: Page): boolean {
  return (page.scope === undefined || may(page.scope)) && page.shown?.() !== false
}

/** Why a page is not of use here, if something is to be switched on. */
export const offBecause = (path: string) => groups.flatMap((g) => g.pages).find((p) => p.path === path && p.shown?.() === false)?.off

/** Begins to load the page that an address names. */
export function loadPage(path: string): void {
  const page = groups.flatMap((g) => g.pages).find((p) => p.path === path)
  if (page && page.view !== Overview) void (page.view as Lazy<Address>).load()
}

/** Loads the other pages one after the other when there is nothing else to do, so that each opens at once. */
export function loadAhead(rest: Lazy<Address>[] = Object.values(later)): void {
  const [first, ...others] = rest
  if (first) whenIdle(() => void first.load().then(() => loadAhead(others)))
}
