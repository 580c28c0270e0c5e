import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { errorOf, request } from '../api'
import { duration, size } from '../format'
import { Hint } from '../parts/hint'
import { useData } from '../resource'

interface Step {
  tool: string
  input?: unknown
  result?: unknown
}

/** An image, a sound or a file that a tool returned. */
interface Media {
  id: string
  tool?: string
  name?: string
  mime_type: string
  size: number
  url: string
}

/** An image, a sound or a file to send. */
interface Attachment {
  name: string
  mime_type: string
  data: string // base64
  size: number
}

/** The model that answers. */
interface Model {
  configured: boolean
  problem?: string
  media: string[]
}

const mostAttached = 20_000_000

interface Turn {
  question: string
  attached: Attachment[]
  media: Media[]
  id?: string // of the message, once the server has it
  answer: string
  status: string
  steps: Step[]
  error?: string
  took?: number
  usage?: Usage
}

interface Usage {
  input_tokens: number
  output_tokens: number
  cost_usd: number
}

/** The conversation; it stays while the user visits other pages. */
const turns = signal<Turn[]>([])
const user = `hud-${crypto.randomUUID().slice(0, 8)}`

/** A conversation with the agent; its tool calls are collapsed. */
export function Chat() {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [files, setFiles] = useState<Attachment[]>([])
  const [problem, setProblem] = useState('')
  const { data: model } = useData(loadModel, [])
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [turns.value])
  const send = async () => {
    const question = text.trim()
    if ((!question && files.length === 0) || busy) return
    setText('')
    setFiles([])
    setBusy(true)
    const began = Date.now()
    turns.value = [...turns.value, { question, attached: files, media: [], answer: '', status: '', steps: [] }]
    const change = (f: (t: Turn) => Turn) => (turns.value = turns.value.map((t, i, all) => (i === all.length - 1 ? f(t) : t)))
    try {
      await stream(question, files, change)
    } catch (e) {
      change((t) => ({ ...t, error: (e as Error).message }))
    }
    change((t) => ({ ...t, status: '', took: Date.now() - began }))
    setBusy(false)
  }
  return (
    <div class="chat">
      <div role="log" aria-live="polite" aria-label="Conversation">
        {turns.value.length === 0 && <Hint>Ask something. The agent can use every connected tool, and scripts.</Hint>}
        {model && !model.configured && <p class="bad">It needs a model: {model.problem}</p>}
        {turns.value.map((t, i) => <Exchange key={i} turn={t} />)}
        <div ref={end} />
      </div>
      <form class="row say" onSubmit={(e) => { e.preventDefault(); void send() }}>
        <label class="hidden" for="message">Message</label>
        <textarea id="message" rows={2} value={text} placeholder="Message" onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); void send() } }} />
        <label class="button">
          Attach<input class="hidden" type="file" multiple aria-label="Attach files"
            onChange={(e) => { void attach(e.currentTarget.files, files).then(setFiles, (p: Error) => setProblem(p.message)); e.currentTarget.value = '' }} />
        </label>
        {busy ? <button type="button" onClick={() => void stop()}>Stop</button> : <button class="main" type="submit">Send</button>}
      </form>
      {files.length > 0 && <p class="soft small">{files.map((f) => `${f.name} (${size(f.size)})`).join(', ')} <button type="button" class="plain" onClick={() => setFiles([])}>Remove</button></p>}
      {problem && <p class="bad">{problem}</p>}
    </div>
  )
}

function Exchange({ turn: t }: { turn: Turn }) {
  return (
    <article class="exchange">
      <p class="prose question">{t.question}</p>
      {t.attached.map((a, i) => <Shown key={i} address={`data:${a.mime_type};base64,${a.data}`} type={a.mime_type} name={a.name} bytes={a.size} />)}
      {t.steps.map((s, i) => (
        <details key={i}><summary class="soft">used <code>{s.tool}</code></summary><pre>{JSON.stringify(s.input)}{s.result !== undefined && `\n→ ${typeof s.result === 'string' ? s.result : JSON.stringify(s.result)}`}</pre></details>
      ))}
      {t.status && <p class="soft busy">{t.status}</p>}
      {t.media.map((m) => <Shown key={m.id} address={m.url} type={m.mime_type} name={m.name ?? `from ${m.tool}`} bytes={m.size} />)}
      <p class="prose">{t.answer}</p>
      {t.error && <p class="bad">{t.error}</p>}
      {t.took !== undefined && <p class="soft small">{duration(t.took)}{t.usage && `, ${t.usage.input_tokens} input tokens, ${t.usage.output_tokens} output tokens, $${t.usage.cost_usd.toFixed(4)}`}</p>}
    </article>
  )
}

/** An image or a sound; other files can be downloaded. */
function Shown({ address, type, name, bytes }: { address: string; type: string; name: string; bytes: number }) {
  if (/^image\/(png|jpeg|gif|webp)$/.test(type)) return <img class="shown" src={address} alt={name} />
  if (type.startsWith('audio/')) return <audio controls src={address} aria-label={name} />
  return <p><a href={address} download={name}>{name}</a> <span class="soft">{type}, {size(bytes)}</span></p>
}

async function loadModel(signal: AbortSignal): Promise<Model> {
  const response = await request('/api/v1/model', { signal })
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as Model
}

/** Reads files to attach to the next message. */
async function attach(chosen: FileList | null, before: Attachment[]): Promise<Attachment[]> {
  const all = [...before]
  for (const file of Array.from(chosen ?? [])) {
    const url = await new Promise<string>((resolve, reject) => {
      const reader = new FileReader()
      reader.onload = () => resolve(reader.result as string)
      reader.onerror = () => reject(new Error(`cannot read ${file.name}`))
      reader.readAsDataURL(file)
    })
    all.push({ name: file.name, mime_type: file.type, data: url.slice(url.indexOf(',') + 1), size: file.size })
  }
  if (all.reduce((sum, a) => sum + a.size, 0) > mostAttached) throw new Error(`Attachments may have ${size(mostAttached)} together.`)
  return all
}

/** Stops the answer that is arriving; the stream ends with what was said so far. */
async function stop(): Promise<void> {
  const id = turns.value.at(-1)?.id
  if (id) await request(`/api/v1/chat/${id}/stop`, { method: 'POST' })
}

interface Event {
  type: string
  message_id?: string
  media?: Media
  message?: string
  text?: string
  tool?: string
  input?: unknown
  result?: unknown
  error?: string
  response?: { usage?: Usage }
}

/** Sends a message and streams the answer. */
async function stream(message: string, files: Attachment[], change: (f: (t: Turn) => Turn) => void): Promise<void> {
  const response = await request('/api/v1/chat/stream', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ client_id: 'hud', user_id: user, message, attachments: files.map(({ name, mime_type, data }) => ({ name, mime_type, data })) }),
  })
  if (!response.ok || !response.body) throw await errorOf(response)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const parts = (rest + value).split('\n\n')
    rest = parts.pop()!
    for (const part of parts) show(JSON.parse(part.slice('data: '.length)) as Event, change)
  }
}

function show(e: Event, change: (f: (t: Turn) => Turn) => void): void {
  switch (e.type) {
    case 'status':
      return change((t) => ({ ...t, status: e.message ?? '', id: e.message_id ?? t.id }))
    case 'media':
      return change((t) => ({ ...t, media: e.media && !t.media.some((m) => m.id === e.media!.id) ? [...t.media, e.media] : t.media }))
    case 'progress':
      return change((t) => ({ ...t, answer: t.answer + (e.text ?? ''), status: '' }))
    case 'tool_use':
      return change((t) => ({ ...t, steps: [...t.steps, { tool: e.tool ?? '', input: e.input }] }))
    case 'tool_result':
      return change((t) => ({ ...t, steps: t.steps.map((s) => (s.tool === e.tool && s.result === undefined ? { ...s, result: e.result } : s)) }))
    case 'complete':
      return change((t) => ({ ...t, usage: e.response?.usage }))
    case 'error':
      throw new Error(e.error)
  }
}
