// The output and log of a script.
import { Hint } from './hint'

export interface OutputLine {
  stream: string
  level?: string
  text: string
}

export function Output({ lines }: { lines: OutputLine[] }) {
  if (lines.length === 0) return <Hint>No output.</Hint>
  return (
    <pre class="output">
      {lines.map((l, i) => <div key={i} class={l.stream === 'stderr' || l.level === 'error' ? 'bad' : l.stream === 'log' ? 'soft' : ''}>{l.level ? `${l.level}: ` : ''}{l.text}</div>)}
    </pre>
  )
}
