// Conversations with the agent: what is stored, and what arrives. An answer goes on
// arriving while the user visits other pages.
import { signal, type Signal } from '@preact/signals'
import { errorOf, get, me, post, request } from '../api'
import type { Owned } from '../shares'

export interface Summary extends Owned {
  id: string
  title: string
  messages: number
  updated_at: string
  busy: boolean
}

/** An image, a sound or a file that a tool returned, or that was sent. */
export interface Media {
  id: string
  tool?: string
  name?: string
  mime_type: string
  size: number
  url: string
}

/** An image, a sound or a file to send. */
export interface Attachment {
  name: string
  mime_type: string
  data: string // base64
  size: number
}

export interface Call {
  id: string
  tool: string
  input?: unknown
  result?: string // undefined while it runs
  failed?: boolean
  took?: number // milliseconds
}

/** A piece of an answer: text, or a call of a tool. */
export interface Piece {
  text?: string
  call?: Call
}

export interface Usage {
  input_tokens: number
  output_tokens: number
  cache_read_input_tokens?: number
  cost_usd: number
}

export interface Turn {
  key: string // idempotency key: the same message is sent again with it
  id?: string // of the message, once the server has it
  question: string
  attached: Media[]
  files: Attachment[] // of a message of this page, to send it again
  pieces: Piece[]
  media: Media[]
  status: string
  busy: boolean
  began: string // time
  error?: string
  notices: { code: string; message: string }[]
  took?: number
  usage?: Usage
  model?: string
  trace?: string
}

interface Answer {
  responses: string[]
  message_id: string
  model?: string
  usage?: Usage
  media?: Media[]
  notices?: { code: string; message: string }[]
  trace_id?: string
}

interface Stored {
  message_id: string
  status: 'waiting' | 'running' | 'done' | 'failed'
  message: string
  attachments?: Media[]
  created_at: string
  ended_at?: string
  response?: Answer
  tool_calls?: { after: number; tool: string; input?: unknown; result: string; failed?: boolean; duration_ms: number }[]
  error?: string
}

export interface Model {
  configured: boolean
  problem?: string
  model?: string
  models: string[]
  media: string[]
}

/** The path of this user's part of the chat API. */
export function person(): string {
  return `/api/v1/orgs/${encodeURIComponent(org())}/users/${encodeURIComponent(user())}`
}

export const user = () => me.value?.user || me.value?.name || me.value?.id || 'page'
const org = () => me.value?.org || 'default'

/** A random id that cannot be guessed. */
export function newID(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('')
}

export const loadModel = (signal: AbortSignal) => get<Model>('/api/v1/model', signal)
export const loadList = async (signal: AbortSignal) => (await get<{ conversations: Summary[] }>(`${person()}/conversations`, signal)).conversations
export const loadModes = (signal: AbortSignal) => get<{ modes: string[]; mode: string }>(`${person()}/modes`, signal)
export const chooseMode = (mode: string) => post(`${person()}/modes`, { mode }, 'PUT')

export async function remove(id: string): Promise<void> {
  const response = await request(`${person()}/conversation?id=${encodeURIComponent(id)}`, { method: 'DELETE' })
  if (!response.ok) throw await errorOf(response)
  await response.text() // a body that nobody reads keeps the request open
  open.delete(`${user()} ${id}`)
}

/** Makes a copy of the user's own, also of what somebody shares, and returns its id. */
export async function copy(id: string): Promise<string> {
  const made = await post<{ id: string }>(`${person()}/conversation/copy`, { id })
  changes.value++
  return made.id
}

/** Counts changes of the list of conversations. */
export const changes = signal(0)

const open = new Map<string, Signal<Turn[] | undefined>>()

/** The turns of a conversation; undefined until they are loaded. */
export function turnsOf(id: string): Signal<Turn[] | undefined> {
  const name = `${user()} ${id}` // another user can log in
  let turns = open.get(name)
  if (!turns) open.set(name, (turns = signal<Turn[] | undefined>(undefined)))
  return turns
}

/** Loads a conversation, unless an answer of it is arriving, and follows an answer that began elsewhere. */
export async function load(id: string, signal: AbortSignal): Promise<void> {
  const turns = turnsOf(id)
  if (turns.value?.some((t) => t.busy)) return
  const { messages } = await get<{ messages: Stored[] }>(`${person()}/conversation?id=${encodeURIComponent(id)}`, signal)
  if (turns.value?.some((t) => t.busy)) return
  turns.value = messages.map(restored)
  for (const t of turns.value.filter((t) => t.busy)) void follow(turns, t.key, () => request(`/api/v1/chat/${t.id!}/stream?tool_events=true`))
}

function restored(m: Stored): Turn {
  const pieces: Piece[] = []
  const said = m.response?.responses ?? []
  for (let i = 0; i <= said.length; i++) {
    for (const [n, c] of (m.tool_calls ?? []).entries()) {
      if (Math.min(c.after, said.length) === i) pieces.push({ call: { id: String(n), tool: c.tool, input: c.input, result: c.result, failed: c.failed, took: c.duration_ms } })
    }
    if (i < said.length) pieces.push({ text: said[i] })
  }
  return {
    key: m.message_id, id: m.message_id, question: m.message, attached: m.attachments ?? [], files: [], pieces, media: m.response?.media ?? [],
    status: m.status === 'waiting' ? 'Waiting for earlier messages…' : '', busy: m.status === 'waiting' || m.status === 'running', began: m.created_at,
    error: m.error, notices: m.response?.notices ?? [], took: m.ended_at ? Date.parse(m.ended_at) - Date.parse(m.created_at) : undefined,
    usage: m.response?.usage, model: m.response?.model, trace: m.response?.trace_id,
  }
}

/** Sends a message, or sends one again with its key. The answer arrives in the conversation. */
export async function send(id: string, question: string, files: Attachment[], model: string, key = newID()): Promise<void> {
  const turns = turnsOf(id)
  const attached = files.map((f, i): Media => ({ id: String(i), name: f.name, mime_type: f.mime_type, size: f.size, url: `data:${f.mime_type};base64,${f.data}` }))
  const turn: Turn = { key, question, attached, files, pieces: [], media: [], status: '', busy: true, began: new Date().toISOString(), notices: [] }
  turns.value = [...(turns.value ?? []).filter((t) => t.key !== key), turn]
  await follow(turns, key, () => request('/api/v1/chat/stream', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
    body: JSON.stringify({
      client_id: 'page', user_id: user(), org: org(), chat_id: id, message: question, message_key: key, model: model || undefined, tool_events: true,
      attachments: files.map(({ name, mime_type, data }) => ({ name, mime_type, data })),
    }),
  }))
}

/** Stops an answer; the stream ends with what was said so far. */
export async function stop(turn: Turn): Promise<void> {
  if (!turn.id) return
  const response = await request(`/api/v1/chat/${turn.id}/stop`, { method: 'POST' })
  if (!response.ok) throw await errorOf(response)
}

type Change = (f: (t: Turn) => Turn) => void

async function follow(turns: Signal<Turn[] | undefined>, key: string, begin: () => Promise<Response>): Promise<void> {
  const began = Date.now()
  const change: Change = (f) => (turns.value = turns.value?.map((t) => (t.key === key ? f(t) : t)))
  changes.value++
  try {
    const response = await begin()
    if (!response.ok || !response.body) throw await errorOf(response)
    await read(response.body, change)
  } catch (e) {
    change((t) => ({ ...t, error: (e as Error).message }))
  }
  change((t) => ({ ...t, status: '', busy: false, took: t.took ?? Date.now() - began }))
  changes.value++
}

async function read(body: ReadableStream<Uint8Array>, change: Change): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error('the connection ended before the answer; reload the page to see it')
    const parts = (rest + value).split('\n\n')
    rest = parts.pop()!
    for (const part of parts) if (show(JSON.parse(part.slice('data: '.length)) as Event, change)) return
  }
}

interface Event {
  type: string
  message_id?: string
  media?: Media
  message?: string
  text?: string
  tool?: string
  input?: unknown
  result?: string
  call_id?: string
  failed?: boolean
  duration_ms?: number
  error?: string
  response?: Answer
}

/** Adds an event to its turn; true if it was the last one. */
function show(e: Event, change: Change): boolean {
  switch (e.type) {
    case 'status':
      change((t) => ({ ...t, status: e.message ?? '', id: e.message_id ?? t.id }))
      return false
    case 'progress':
      change((t) => ({ ...t, pieces: withText(t.pieces, e.text ?? ''), status: '' }))
      return false
    case 'media':
      change((t) => ({ ...t, media: e.media && !t.media.some((m) => m.id === e.media!.id) ? [...t.media, e.media] : t.media }))
      return false
    case 'tool_use':
      change((t) => ({ ...t, pieces: [...t.pieces, { call: { id: e.call_id ?? '', tool: e.tool ?? '', input: e.input } }] }))
      return false
    case 'tool_result':
      change((t) => ({ ...t, pieces: t.pieces.map((p) => (p.call?.id === e.call_id && p.call?.result === undefined ? { call: { ...p.call!, result: e.result ?? '', failed: e.failed, took: e.duration_ms } } : p)) }))
      return false
    case 'complete':
      change((t) => ({ ...t, ...outcome(t, e.response!) }))
      return true
    case 'error':
      throw new Error(e.error)
  }
  return false
}

/** Text is added to the last piece, if that is text. */
function withText(pieces: Piece[], text: string): Piece[] {
  const last = pieces.at(-1)
  if (last?.text === undefined) return [...pieces, { text: text.replace(/^\n/, '') }]
  return [...pieces.slice(0, -1), { text: last.text + text }]
}

function outcome(t: Turn, a: Answer): Partial<Turn> {
  const silent = !t.pieces.some((p) => p.text) // it was answered before this page followed it
  return {
    pieces: silent ? [...t.pieces, ...a.responses.map((text) => ({ text }))] : t.pieces,
    media: a.media ?? t.media, usage: a.usage, model: a.model, trace: a.trace_id, notices: a.notices ?? [],
  }
}
