// Colours code with the grammars of the editor.
import { StreamLanguage, type Language, type StreamParser } from '@codemirror/language'
import { javascriptLanguage, tsxLanguage } from '@codemirror/lang-javascript'
import { c, cpp, csharp, java, kotlin } from '@codemirror/legacy-modes/mode/clike'
import { css } from '@codemirror/legacy-modes/mode/css'
import { diff } from '@codemirror/legacy-modes/mode/diff'
import { dockerFile } from '@codemirror/legacy-modes/mode/dockerfile'
import { go } from '@codemirror/legacy-modes/mode/go'
import { lua } from '@codemirror/legacy-modes/mode/lua'
import { python } from '@codemirror/legacy-modes/mode/python'
import { ruby } from '@codemirror/legacy-modes/mode/ruby'
import { rust } from '@codemirror/legacy-modes/mode/rust'
import { shell } from '@codemirror/legacy-modes/mode/shell'
import { standardSQL } from '@codemirror/legacy-modes/mode/sql'
import { toml } from '@codemirror/legacy-modes/mode/toml'
import { html, xml } from '@codemirror/legacy-modes/mode/xml'
import { yaml } from '@codemirror/legacy-modes/mode/yaml'
import { classHighlighter, highlightCode } from '@lezer/highlight'

const parsers: Record<string, StreamParser<unknown>> = {
  lua, python, py: python, sh: shell, bash: shell, shell, zsh: shell, console: shell, go, golang: go, rust, rs: rust, ruby, rb: ruby, sql: standardSQL, toml, yaml, yml: yaml,
  html, xml, svg: xml, css, diff, patch: diff, dockerfile: dockerFile, c, cpp, 'c++': cpp, java, kotlin, csharp, cs: csharp,
} as Record<string, StreamParser<unknown>>

const known = new Map<string, Language>()
for (const name of ['js', 'javascript', 'json', 'jsonc', 'mjs', 'cjs']) known.set(name, javascriptLanguage)
for (const name of ['ts', 'typescript', 'tsx', 'jsx']) known.set(name, tsxLanguage)

function grammar(name: string): Language | undefined {
  const found = known.get(name)
  if (found || !parsers[name]) return found
  const made = StreamLanguage.define(parsers[name])
  known.set(name, made)
  return made
}

/** Replaces the text of an element by coloured text; unknown languages stay as they are. */
export function highlight(element: HTMLElement, language: string): void {
  const text = element.textContent ?? ''
  const rules = grammar(language.toLowerCase())
  if (!rules || text.length > 100_000) return
  const parts: Node[] = []
  highlightCode(text, rules.parser.parse(text), classHighlighter, (piece, classes) => {
    if (!classes) return void parts.push(document.createTextNode(piece))
    const span = document.createElement('span')
    span.className = classes
    span.textContent = piece
    parts.push(span)
  }, () => parts.push(document.createTextNode('\n')))
  element.replaceChildren(...parts)
}
