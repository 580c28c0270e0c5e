// Text of a model as Markdown. The parser, the sanitiser and the highlighter are loaded
// when they are needed; until then the text is shown as it is.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** The languages of scripts, as code blocks name them. */
export type Runnable = 'lua' | 'javascript' | 'typescript'
const runnables: Record<string, Runnable> = { lua: 'lua', js: 'javascript', javascript: 'javascript', ts: 'typescript', typescript: 'typescript' }

type Render = (text: string) => DocumentFragment

let render: Render | undefined
let loading: Promise<void> | undefined

function load(): Promise<void> {
  loading ??= import('./markdown_render').then((m) => { render = m.render })
  return loading
}

/** `whole` is false while the text is still arriving: code is highlighted at the end. */
export function Markdown({ text, whole = true, tryIt }: { text: string; whole?: boolean; tryIt?: (language: Runnable, code: string) => void }) {
  const box = useRef<HTMLDivElement>(null)
  const [ready, setReady] = useState(render !== undefined)
  useLayoutEffect(() => {
    if (!ready) void load().then(() => setReady(true), () => undefined) // without it the text stays as it is
  }, [ready])
  useLayoutEffect(() => {
    if (!ready || !box.current) return
    box.current.replaceChildren(render!(text))
    for (const block of box.current.querySelectorAll('pre')) decorate(block, whole, tryIt)
  }, [ready, text, whole])
  return ready ? <div class="markdown" ref={box} /> : <p class="prose">{text}</p>
}

/** Adds the name of the language and a button that copies the code, and highlights it. */
function decorate(block: HTMLPreElement, whole: boolean, tryIt?: (language: Runnable, code: string) => void): void {
  const code = block.querySelector('code')
  if (!code) return
  const language = /language-([\w+#-]+)/.exec(code.className)?.[1] ?? ''
  const frame = document.createElement('div')
  frame.className = 'code'
  const head = document.createElement('div')
  head.className = 'row spread small soft'
  const source = code.textContent ?? '', runnable = runnables[language]
  const buttons = document.createElement('span')
  buttons.append(copyButton(source))
  if (tryIt && runnable) buttons.prepend(button('Try it', () => tryIt(runnable, source)))
  head.append(language || 'text', buttons)
  block.tabIndex = 0 // long lines can be scrolled with the keyboard
  block.replaceWith(frame)
  frame.append(head, block)
  if (whole && language) void import('./highlight').then((m) => m.highlight(code, language), () => undefined)
}

function button(text: string, act: (b: HTMLButtonElement) => void): HTMLButtonElement {
  const made = document.createElement('button')
  made.type = 'button'
  made.className = 'plain'
  made.textContent = text
  made.onclick = () => act(made)
  return made
}

const copyButton = (text: string) => button('Copy', (b) => void navigator.clipboard.writeText(text).then(() => { b.textContent = 'Copied' }, () => { b.textContent = 'Cannot copy' }))
