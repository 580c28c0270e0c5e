// The difference of two texts, line by line.
import { Hint } from './hint'

export function Diff({ before, after }: { before: string; after: string }) {
  const lines = diff(before.split('\n'), after.split('\n'))
  if (lines.every((l) => l.kind === ' ')) return <Hint>No difference.</Hint>
  return (
    <pre class="diff">
      {lines.map((l, i) => <div key={i} class={l.kind === '+' ? 'good' : l.kind === '-' ? 'bad' : 'soft'}>{l.kind} {l.text}</div>)}
    </pre>
  )
}

/** A text with the words marked that were added to it and removed from it. */
export function Words({ before, after }: { before: string; after: string }) {
  const words = (text: string) => text.split(/(\s+)/)
  return <>{diff(words(before), words(after)).map((w, i) => (w.kind === '+' ? <ins key={i}>{w.text}</ins> : w.kind === '-' ? <del key={i}>{w.text}</del> : w.text))}</>
}

interface Line {
  kind: '+' | '-' | ' '
  text: string
}

/** A diff by longest common subsequence; if the texts are too long, everything between their common start and end is replaced. */
export function diff(a: string[], b: string[]): Line[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const x = a.slice(head, a.length - tail), y = b.slice(head, b.length - tail)
  const same = (text: string): Line => ({ kind: ' ', text })
  const middle = x.length * y.length > 4_000_000
    ? [...x.map((text): Line => ({ kind: '-', text })), ...y.map((text): Line => ({ kind: '+', text }))]
    : common(x, y)
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)]
}

function common(x: string[], y: string[]): Line[] {
  const width = y.length + 1
  const table = new Uint32Array((x.length + 1) * width)
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      table[i * width + j] = x[i] === y[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1])
    }
  }
  const lines: Line[] = []
  let i = 0, j = 0
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      lines.push({ kind: ' ', text: x[i++] })
      j++
    } else if (j >= y.length || (i < x.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      lines.push({ kind: '-', text: x[i++] })
    } else {
      lines.push({ kind: '+', text: y[j++] })
    }
  }
  return lines
}
