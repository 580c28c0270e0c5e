// What a script printed and logged.
import { Hint } from './hint'

export interface Said {
  stream: string
  level?: string
  text: string
}

export function Output({ lines }: { lines: Said[] }) {
  if (lines.length === 0) return <Hint>It said nothing.</Hint>
  return (
    <pre class="output">
      {lines.map((l, i) => <div key={i} class={l.stream === 'stderr' || l.level === 'error' ? 'bad' : l.stream === 'log' ? 'soft' : ''}>{l.level ? `${l.level}: ` : ''}{l.text}</div>)}
    </pre>
  )
}
