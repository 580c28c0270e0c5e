// The code editor. This file and CodeMirror are a separate chunk, loaded with the
// playground.
import { autocompletion, closeBrackets, completionKeymap, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { javascript } from '@codemirror/lang-javascript'
import { bracketMatching, defaultHighlightStyle, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { lua } from '@codemirror/legacy-modes/mode/lua'
import { Annotation, Compartment, EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'
import { call } from '../mcp'

export type Language = 'lua' | 'javascript'

interface Props {
  value: string
  language: Language
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
  return language === 'lua' ? StreamLanguage.define(lua) : javascript({ typescript: true })
}

/** Marks a change that came from the value property, so that it is not reported back. */
const external = Annotation.define<boolean>()

const darkMode = matchMedia('(prefers-color-scheme: dark)')

/** The theme for light or dark mode. */
function theme() {
  return [
    syntaxHighlighting(darkMode.matches ? dark : defaultHighlightStyle),
    EditorView.theme({ '&': { fontSize: '0.9rem' }, '.cm-scroller': { fontFamily: 'var(--mono)' }, '.cm-content, .cm-gutter': { minHeight: '16rem' } }, { dark: darkMode.matches }),
  ]
}

export default function Editor({ value, language, change, run }: Props) {
  const container = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>()
  const languageConf = useRef(new Compartment())
  const themeConf = useRef(new Compartment())
  // Texts that were reported and have not come back as value yet. During fast typing the
  // value is older than the text: applying it as an external change would undo the typing
  // and be reported again, without end.
  const reported = useRef<string[]>([])
  const latest = useRef({ change, run })
  latest.current = { change, run }
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
          lineNumbers(), history(), indentOnInput(), bracketMatching(), closeBrackets(),
          languageConf.current.of(grammar(language)),
          themeConf.current.of(theme()),
          autocompletion({ override: [complete] }),
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
    return () => {
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
  }, [value])
  return <div class="editor" ref={container} />
}

/** Completes modules, their functions, upstreams and their tools. */
async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const path = context.matchBefore(/[A-Za-z_][\w.]*/)
  if (!path || (path.from === path.to && !context.explicit)) return null
  const parts = path.text.split('.')
  const from = path.to - parts[parts.length - 1].length
  if (parts[0] === 'mcp' && parts.length === 2) return { from, options: await spaces() }
  if (parts[0] === 'mcp' && parts.length === 3) return { from, options: await toolsOf(parts[1]) }
  if (parts.length === 2) return { from, options: await functionsOf(parts[0]) }
  return parts.length === 1 ? { from, options: await modules() } : null
}

const known = new Map<string, Promise<Completion[]>>()

/** Loads once and caches the result. */
function once(key: string, load: () => Promise<Completion[]>): Promise<Completion[]> {
  let answer = known.get(key)
  if (!answer) {
    answer = load().catch(() => {
      known.delete(key)
      return []
    })
    known.set(key, answer)
  }
  return answer
}

function modules(): Promise<Completion[]> {
  return once('', async () => (await call<{ topics: string[] }>('lua_help')).topics.map((label) => ({ label, type: 'namespace' })))
}

function functionsOf(module: string): Promise<Completion[]> {
  return once(`help ${module}`, async () => {
    const { page } = await call<{ page: string }>('lua_help', { topic: module })
    return [...page.matchAll(/^## (\w+)\.(\w+)(.*)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm)]
      .filter((m) => m[1] === module)
      .map((m) => ({ label: m[2], type: 'function', detail: m[3], info: m[4].trim() }))
  })
}

function spaces(): Promise<Completion[]> {
  return call<{ upstreams: { namespace: string; endpoint: string }[] }>('mcp_list_upstreams').then(
    ({ upstreams }) => upstreams.map((u) => ({ label: u.namespace, type: 'namespace', detail: u.endpoint })),
    () => [],
  )
}

function toolsOf(namespace: string): Promise<Completion[]> {
  return call<{ tools: { name: string; signature: string; description: string }[] }>('search_tools', { query: '', namespace, limit: 100 }).then(
    ({ tools }) => tools.map((t) => ({ label: t.name.slice(namespace.length + 1), type: 'function', detail: t.signature, info: t.description })),
    () => [],
  )
}
