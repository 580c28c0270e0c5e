import { may } from '../api'

const views = { tools: 'All tools', prompts: 'Prompts and resources', sets: 'Sets' }

/** All tools, what servers offer beside them, and the sets. */
export function ToolTabs({ at }: { at: keyof typeof views }) {
  return (
    <nav class="tabs" aria-label="Views of tools">
      {Object.entries(views).filter(([path]) => path !== 'sets' || may('admin')).map(([path, name]) => <a key={path} href={`#/${path}`} aria-current={at === path ? 'page' : undefined}>{name}</a>)}
    </nav>
  )
}
