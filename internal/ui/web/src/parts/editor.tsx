// The code editor. This file and CodeMirror are a separate chunk, loaded with the
// playground.
import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { lua } from '@codemirror/legacy-modes/mode/lua'
import { Annotation, Compartment, EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { complete } from '../playground/complete'
import { faultMarks, showFault, type Fault } from '../playground/mark'

export type Language = 'lua' | 'javascript' | 'typescript'

interface Props {
  value: string
  language: Language
  fault?: Fault // marked at its line
  change: (text: string) => void
  run: () => void
}

const dark = HighlightStyle.define([
  { tag: tags.keyword, color: '#c6a0f6' },
  { tag: [tags.string, tags.special(tags.string)], color: '#a6da95' },
  { tag: [tags.number, tags.bool, tags.null], color: '#f5a97f' },
  { tag: tags.comment, color: '#939ab7', fontStyle: 'italic' },
  { tag: [tags.function(tags.variableName), tags.standard(tags.variableName)], color: '#8aadf4' },
])

function grammar(language: Language) {
  return language === 'lua' ? StreamLanguage.define(lua) : javascript({ typescript: language === 'typescript' })
}

/** Marks a change that came from the value property, so that it is not reported back. */
const external = Annotation.define<boolean>()

const darkMode = matchMedia('(prefers-color-scheme: dark)')

/** Whether the page is dark: as somebody chose, or as the system is. */
function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme
  return chosen === 'dark' || (chosen !== 'light' && darkMode.matches)
}

/** The theme for light or dark mode. */
function theme() {
  return [
    syntaxHighlighting(isDark() ? dark : defaultHighlightStyle),
    EditorView.theme({ '&': { fontSize: '0.9rem' }, '.cm-scroller': { fontFamily: 'var(--mono)' }, '.cm-content, .cm-gutter': { minHeight: '16rem' } }, { dark: isDark() }),
  ]
}

export default function Editor({ value, language, fault, change, run }: Props) {
  const container = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>()
  const languageConf = useRef(new Compartment())
  const themeConf = useRef(new Compartment())
  // Texts that were reported and have not come back as value yet. During fast typing the
  // value is older than the text: applying it as an external change would undo the typing
  // and be reported again, without end.
  const reported = useRef<string[]>([])
  const latest = useRef({ change, run, language })
  latest.current = { change, run, language }
  useEffect(() => {
    // In a shadow tree CodeMirror uses adopted style sheets. In the document it would use
    // <style> elements, which our content security policy forbids.
    const root = container.current!.shadowRoot ?? container.current!.attachShadow({ mode: 'open' })
    view.current = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(), EditorView.lineWrapping, history(), indentOnInput(), bracketMatching(), closeBrackets(),
          languageConf.current.of(grammar(language)),
          themeConf.current.of(theme()),
          faultMarks,
          autocompletion({ icons: false, override: [(context) => complete(context, latest.current.language === 'lua')] }),
          keymap.of([
            { key: 'Mod-Enter', run: () => (latest.current.run(), true) },
            ...completionKeymap, ...defaultKeymap, ...historyKeymap, // Tab leaves the editor, for keyboard users
          ]),
          EditorView.contentAttributes.of({ 'aria-label': 'script' }),
          EditorView.updateListener.of((u) => {
            if (!u.docChanged || u.transactions.some((t) => t.annotation(external))) return
            const text = u.state.doc.toString()
            reported.current.push(text)
            latest.current.change(text)
          }),
        ],
      }),
    })
    const change = () => view.current?.dispatch({ effects: themeConf.current.reconfigure(theme()) })
    darkMode.addEventListener('change', change)
    const chosen = new MutationObserver(change)
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      chosen.disconnect()
      darkMode.removeEventListener('change', change)
      view.current?.destroy()
    }
  }, [])
  useEffect(() => view.current?.dispatch({ effects: languageConf.current.reconfigure(grammar(language)) }), [language])
  useEffect(() => {
    const at = reported.current.indexOf(value)
    if (at >= 0) {
      reported.current.splice(0, at + 1)
      return
    }
    reported.current = []
    const editor = view.current
    if (!editor || editor.state.doc.toString() === value) return
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value }, annotations: external.of(true) })
    showFault(editor, fault)
  }, [value])
  useEffect(() => {
    if (view.current) showFault(view.current, fault)
  }, [fault])
  return <div class="editor" ref={container} />
}
