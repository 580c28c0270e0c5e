// Every page, in the groups of the side bar.
import type { ComponentType } from 'preact'
import { may } from '../api'
import { Approvals } from '../pages/approvals'
import { Artifacts } from '../pages/artifacts'
import { Audit } from '../pages/audit'
import { Chat } from '../pages/chat'
import { Jobs } from '../pages/jobs'
import { Overview } from '../pages/overview'
import { People } from '../pages/people'
import { Playground } from '../pages/playground'
import { Scripts } from '../pages/scripts'
import { Servers } from '../pages/servers'
import { Settings } from '../pages/settings'
import { Timeline } from '../pages/timeline'
import { Tools } from '../pages/tools'
import { Traces } from '../pages/traces'
import { Usage } from '../pages/usage'

export interface Page {
  path: string
  title: string
  key: string // g and this key open it
  view: ComponentType<{ rest: string }>
  scope?: string // the scope that it needs, beside read
  within?: string // the page whose entry of the side bar it belongs to
}

export interface Group {
  title?: string
  pages: Page[]
}

export const groups: Group[] = [
  { pages: [{ path: 'overview', title: 'Overview', key: 'o', view: Overview }] },
  {
    title: 'Connect',
    pages: [
      { path: 'servers', title: 'Servers', key: 's', view: Servers },
      { path: 'tools', title: 'Tools', key: 't', view: Tools },
      { path: 'approvals', title: 'Approvals', key: 'a', view: Approvals },
    ],
  },
  {
    title: 'Build',
    pages: [
      { path: 'playground', title: 'Playground', key: 'p', view: Playground },
      { path: 'library', title: 'Library', key: 'l', view: Artifacts },
      { path: 'scripts', title: 'Scripts', key: 'c', view: Scripts, within: 'library' },
      { path: 'artifacts', title: 'Artifacts', key: 'f', view: Artifacts, within: 'library' },
      { path: 'jobs', title: 'Jobs', key: 'j', view: Jobs },
      { path: 'timeline', title: 'Timeline', key: 'm', view: Timeline },
    ],
  },
  { title: 'Talk', pages: [{ path: 'chat', title: 'Chat', key: 'h', view: Chat }] },
  {
    title: 'Watch',
    pages: [
      { path: 'traces', title: 'Traces', key: 'r', view: Traces },
      { path: 'audit', title: 'Audit', key: 'u', view: Audit, scope: 'admin' },
    ],
  },
  {
    title: 'Manage',
    pages: [
      { path: 'people', title: 'People and keys', key: 'k', view: People, scope: 'admin' },
      { path: 'usage', title: 'Usage', key: 'y', view: Usage, scope: 'chat' },
      { path: 'settings', title: 'Settings', key: ',', view: Settings },
    ],
  },
]

/** The pages that this user may see. */
export function visiblePages(): Page[] {
  return groups.flatMap((g) => g.pages).filter(isVisible)
}

export function isVisible(page: Page): boolean {
  return page.scope === undefined || may(page.scope)
}
