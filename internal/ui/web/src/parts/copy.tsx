import { useState } from 'preact/hooks'

/** A button that copies text to the clipboard. */
export function Copy({ text, children }: { text: string; children: string }) {
  const [done, setDone] = useState(false)
  return (
    <button type="button" onClick={async () => {
      await navigator.clipboard.writeText(text)
      setDone(true)
      setTimeout(() => setDone(false), 1500)
    }}>{done ? 'Copied' : children}</button>
  )
}
