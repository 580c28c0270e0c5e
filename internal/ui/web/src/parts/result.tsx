// Shows the result of a tool according to its type.
import { useState } from 'preact/hooks'
import { textOf, type Content, type ToolResult } from '../mcp'
import { Copy } from './copy'
import { Json } from './json'
import { PianoRoll } from './pianoroll'

const views = ['shown', 'text', 'JSON'] as const

/** The result as a tree, image, sound or notes; as the text that an agent reads; or as the message that was sent. */
export function Result({ result }: { result: ToolResult }) {
  const [view, setView] = useState<(typeof views)[number]>('shown')
  const raw = JSON.stringify(result, null, 2)
  return (
    <div class="result">
      <div class="row spread">
        <div class="segments" role="group" aria-label="Result as">{views.map((v) => <button key={v} type="button" aria-pressed={v === view} onClick={() => setView(v)}>{v === 'shown' ? 'View' : v === 'text' ? 'Text' : v}</button>)}</div>
        <Copy text={view === 'JSON' ? raw : textOf(result) || raw}>Copy</Copy>
      </div>
      {view === 'text' && <pre>{textOf(result) || 'The result has no text.'}</pre>}
      {view === 'JSON' && <pre>{raw}</pre>}
      {view === 'shown' && result.structuredContent !== undefined && <Json value={result.structuredContent} />}
      {view === 'shown' && (result.content ?? []).map((c, i) => <Block key={i} content={c} hidden={result.structuredContent !== undefined} />)}
    </div>
  )
}

/** One content block. Text beside structured content usually repeats it, so it is collapsed. */
function Block({ content: c, hidden }: { content: Content; hidden: boolean }) {
  if (c.type === 'text') {
    const parsed = parse(c.text ?? '')
    const view = parsed === undefined ? <pre>{c.text}</pre> : <Json value={parsed} />
    return hidden ? <details><summary class="soft">as text</summary>{view}</details> : view
  }
  const embedded = c.resource as { mimeType?: string; blob?: string; text?: string; uri?: string } | undefined
  const type = c.mimeType ?? embedded?.mimeType ?? ''
  const data = c.data ?? embedded?.blob
  if (data && type.startsWith('image/')) return <img src={`data:${safeType(type)};base64,${data}`} alt="image from the tool" />
  if (data && type.startsWith('audio/') && !type.includes('midi')) return <audio controls src={`data:${safeType(type)};base64,${data}`} />
  if (data && type.includes('midi')) return <PianoRoll bytes={bytesOf(data)} />
  if (embedded?.text !== undefined) return <pre>{embedded.text}</pre>
  return <Json value={c} />
}

/** Decodes base64; empty if it is invalid. */
function bytesOf(base64: string): Uint8Array {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}

/** The media type for a data: URL, without parameters from the server. */
function safeType(type: string): string {
  return /^[a-z]+\/[a-z0-9.+-]+/i.exec(type)?.[0] ?? 'application/octet-stream'
}

function parse(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
