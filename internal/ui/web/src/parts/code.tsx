// Source code with its colours.
import { useLayoutEffect, useRef } from 'preact/hooks'

export function Code({ text, language }: { text: string; language: string }) {
  const box = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    box.current!.textContent = text
    void import('./highlight').then((m) => box.current && m.highlight(box.current, language), () => undefined) // without it the text stays as it is
  }, [text, language])
  return <pre class="source" tabIndex={0} aria-label="Source"><code ref={box} /></pre>
}
