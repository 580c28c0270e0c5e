import { may } from '../api'

/** All tools, and the sets of them. */
export function ToolTabs({ at }: { at: 'tools' | 'sets' }) {
  if (!may('admin')) return null
  return (
    <nav class="tabs" aria-label="Views of tools">
      {([['tools', 'All tools'], ['sets', 'Sets']] as const).map(([path, name]) => <a key={path} href={`#/${path}`} aria-current={at === path ? 'page' : undefined}>{name}</a>)}
    </nav>
  )
}
