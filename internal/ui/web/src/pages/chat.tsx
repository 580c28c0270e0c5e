import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { errorOf, request } from '../api'
import { duration } from '../format'
import { Hint } from '../parts/hint'

interface Step {
  tool: string
  input?: unknown
  result?: unknown
}

interface Turn {
  question: string
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
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [turns.value])
  const send = async () => {
    const question = text.trim()
    if (!question || busy) return
    setText('')
    setBusy(true)
    const began = Date.now()
    turns.value = [...turns.value, { question, answer: '', status: '', steps: [] }]
    const change = (f: (t: Turn) => Turn) => (turns.value = turns.value.map((t, i, all) => (i === all.length - 1 ? f(t) : t)))
    try {
      await stream(question, change)
    } catch (e) {
      change((t) => ({ ...t, error: (e as Error).message }))
    }
    change((t) => ({ ...t, status: '', took: Date.now() - began }))
    setBusy(false)
  }
  return (
    <div class="chat">
      <div role="log" aria-live="polite" aria-label="Conversation">
        {turns.value.length === 0 && <Hint>Ask something. The agent can use every connected tool, and scripts. It needs a model: set `chat.provider` and a key such as `ANTHROPIC_API_KEY`.</Hint>}
        {turns.value.map((t, i) => <Exchange key={i} turn={t} />)}
        <div ref={end} />
      </div>
      <form class="row say" onSubmit={(e) => { e.preventDefault(); void send() }}>
        <label class="hidden" for="message">Message</label>
        <textarea id="message" rows={2} value={text} placeholder="Message" onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); void send() } }} />
        <button class="main" type="submit" disabled={busy}>Send</button>
      </form>
    </div>
  )
}

function Exchange({ turn: t }: { turn: Turn }) {
  return (
    <article class="exchange">
      <p class="prose question">{t.question}</p>
      {t.steps.map((s, i) => (
        <details key={i}><summary class="soft">used <code>{s.tool}</code></summary><pre>{JSON.stringify(s.input)}{s.result !== undefined && `\n→ ${typeof s.result === 'string' ? s.result : JSON.stringify(s.result)}`}</pre></details>
      ))}
      {t.status && <p class="soft busy">{t.status}</p>}
      <p class="prose">{t.answer}</p>
      {t.error && <p class="bad">{t.error}</p>}
      {t.took !== undefined && <p class="soft small">{duration(t.took)}{t.usage && `, ${t.usage.input_tokens} input tokens, ${t.usage.output_tokens} output tokens, $${t.usage.cost_usd.toFixed(4)}`}</p>}
    </article>
  )
}

interface Event {
  type: string
  message?: string
  text?: string
  tool?: string
  input?: unknown
  result?: unknown
  error?: string
  response?: { usage?: Usage }
}

/** Sends a message and streams the answer. */
async function stream(message: string, change: (f: (t: Turn) => Turn) => void): Promise<void> {
  const response = await request('/api/v1/chat/stream', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({ client_id: 'hud', user_id: user, message }),
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
      return change((t) => ({ ...t, status: e.message ?? '' }))
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
