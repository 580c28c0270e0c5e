// The plan of a script: its effects in order, with their arguments.
import type { ComponentChildren } from 'preact'
import { size } from '../format'
import { Hint } from './hint'

export interface Planned {
  number: number
  effect?: string
  action?: string
  arguments?: Record<string, unknown>
  bytes?: number
  diff?: string // of the file it changes
  unread?: string // why there is none, although a tool changes a file
  uncertain?: boolean
}

export function Plan({ steps }: { steps: Planned[] }) {
  if (steps.length === 0) return <Hint>No changes.</Hint>
  return (
    <ol class="plan">
      {steps.map((p, i) => (
        <li key={i} value={p.number}>
          <code>{p.action ?? p.effect}</code>{p.uncertain && <span class="warn small"> depends on a mocked result</span>}
          {p.arguments && Object.keys(p.arguments).length > 0 && (
            <Folded when={!!p.diff}><dl>{Object.entries(p.arguments).map(([name, value]) => <div key={name}><dt>{name}</dt><dd><Argument value={value} /></dd></div>)}</dl></Folded>
          )}
          {p.diff && <UnifiedDiff text={p.diff} />}
          {p.unread && <p class="warn small">What the file has now is not shown: {p.unread}. The arguments have what it gets.</p>}
        </li>
      ))}
    </ol>
  )
}

/** What the difference shows already is folded. */
function Folded({ when, children }: { when: boolean; children: ComponentChildren }) {
  return when ? <details class="small"><summary class="soft">Arguments</summary>{children}</details> : <>{children}</>
}

/** A unified diff with its lines coloured. */
function UnifiedDiff({ text }: { text: string }) {
  const kind = (line: string) => (/^(\+\+\+|---|@@)/.test(line) ? 'soft' : line.startsWith('+') ? 'good' : line.startsWith('-') ? 'bad' : '')
  return <pre class="diff">{text.split('\n').map((line, i) => <div key={i} class={kind(line)}>{line}</div>)}</pre>
}

const maxInline = 400

/** Long values are collapsed but complete, so that the user can review all of it. */
function Argument({ value }: { value: unknown }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 1)
  if (text.length <= maxInline) return <span class="mono prose">{text}</span>
  return <details><summary class="mono">{text.slice(0, 80)}… <span class="soft">({size(text.length)})</span></summary><pre>{text}</pre></details>
}
