// The views of what happened: by agent, by job, every call, and what administrators changed.
import { may } from '../api'

const views = [['activity', 'Agents'], ['jobs', 'Jobs'], ['traces', 'All calls'], ['audit', 'Changes']] as const

export function Views({ at }: { at: (typeof views)[number][0] }) {
  return (
    <nav class="tabs" aria-label="Views">
      {views.filter(([path]) => path !== 'audit' || may('admin')).map(([path, name]) => <a key={path} href={`#/${path}`} aria-current={at === path ? 'page' : undefined}>{name}</a>)}
    </nav>
  )
}
