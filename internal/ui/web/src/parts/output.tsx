// The output and log of a script.
import { useEffect, useRef } from 'preact/hooks'
import { Hint } from './hint'

export interface OutputLine {
  stream: string
  level?: string
  text: string
}

/** With `follow` the last line stays in view, unless somebody scrolled up. */
export function Output({ lines, follow = false }: { lines: OutputLine[]; follow?: boolean }) {
  const box = useRef<HTMLPreElement>(null)
  const end = useRef(true)
  useEffect(() => {
    if (follow && end.current && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [lines.length, follow])
  if (lines.length === 0) return <Hint>No output.</Hint>
  return (
    <pre class="output tail" ref={box} tabIndex={0} aria-label="lines of output" role="region" onScroll={(e) => (end.current = e.currentTarget.scrollHeight - e.currentTarget.scrollTop - e.currentTarget.clientHeight < 8)}>
      {lines.map((l, i) => <div key={i} class={l.stream === 'stderr' || l.level === 'error' ? 'bad' : l.stream === 'log' ? 'soft' : ''}>{l.level ? `${l.level}: ` : ''}{l.text}</div>)}
    </pre>
  )
}
