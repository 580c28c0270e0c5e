// Marks the line of an error in the editor, with its message below the line. The next
// change of the text removes it.
import { StateEffect, StateField, type Text } from '@codemirror/state'
import { Decoration, EditorView, WidgetType, type DecorationSet } from '@codemirror/view'

export interface Fault {
  line: number
  column?: number
  message: string
}

export const setFault = StateEffect.define<Fault | undefined>()

class Message extends WidgetType {
  constructor(readonly text: string) {
    super()
  }

  override eq(other: Message): boolean {
    return other.text === this.text
  }

  toDOM(): HTMLElement {
    const box = document.createElement('div')
    box.className = 'cm-fault'
    box.textContent = this.text
    return box
  }
}

function marks(doc: Text, fault: Fault): DecorationSet {
  if (fault.line < 1 || fault.line > doc.lines) return Decoration.none
  const line = doc.line(fault.line)
  return Decoration.set([
    Decoration.line({ class: 'cm-faulty' }).range(line.from),
    Decoration.widget({ widget: new Message(fault.message), block: true, side: 1 }).range(line.to),
  ])
}

export const faultMarks = [
  StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update: (shown, t) => {
      for (const e of t.effects) if (e.is(setFault)) return e.value ? marks(t.newDoc, e.value) : Decoration.none
      return t.docChanged ? Decoration.none : shown
    },
    provide: (field) => EditorView.decorations.from(field),
  }),
  EditorView.theme({
    '.cm-faulty': { background: 'color-mix(in srgb, var(--bad) 14%, transparent)' },
    '.cm-fault': { color: 'var(--bad)', padding: '.1rem .5rem .2rem', borderLeft: '3px solid var(--bad)', whiteSpace: 'pre-wrap' },
  }),
]

/** Shows a fault, or none, and scrolls to it. */
export function showFault(view: EditorView, fault?: Fault): void {
  view.dispatch({ effects: setFault.of(fault) })
  if (!fault || fault.line > view.state.doc.lines || fault.line < 1) return
  view.dispatch({ effects: EditorView.scrollIntoView(view.state.doc.line(fault.line).from, { y: 'center' }) })
}
