// The client that shows an App of ours: JSON-RPC by messages to the window around the page. An App
// is a page of its own, without a framework and without network, which others may show.

interface Message {
  jsonrpc: '2.0'
  id?: number | string
  method?: string
  params?: Record<string, unknown>
  result?: unknown
  error?: { message: string }
}

/** The result of a tool. */
export interface Result {
  content?: { type: string; text?: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

/** What the server adds to a result for the App that shows it. */
export interface Grant {
  key: string // for app_call
  url: string // of our own page about it
  decide?: boolean // a decision may be made here
}

const waiting = new Map<number, (m: Message) => void>()
let lastID = 0
let capabilities: Record<string, unknown> = {}

const post = (m: Omit<Message, 'jsonrpc'>) => parent.postMessage({ jsonrpc: '2.0', ...m }, '*')

function request<T>(method: string, params: Record<string, unknown>): Promise<T> {
  const id = ++lastID
  post({ id, method, params })
  return new Promise((resolve, reject) => waiting.set(id, (m) => (m.error ? reject(new Error(m.error.message)) : resolve(m.result as T))))
}

/** Whether the client can do something, such as openLinks. */
export const can = (what: string) => capabilities[what] !== undefined

/** Connects to the client. `show` is called with each result of the tool, `ended` when the page is closed. */
export async function connect(name: string, show: (r: Result) => void, ended: () => void): Promise<void> {
  addEventListener('message', (e: MessageEvent<Message>) => {
    const m = e.data
    if (e.source !== parent || m?.jsonrpc !== '2.0') return
    if (m.method === undefined) {
      waiting.get(m.id as number)?.(m)
      waiting.delete(m.id as number)
    } else if (m.method === 'ui/notifications/tool-result') show(m.params as Result)
    else if (m.method === 'ui/notifications/host-context-changed') adapt(m.params)
    else if (m.id !== undefined) {
      if (m.method === 'ui/resource-teardown') ended()
      post({ id: m.id, result: {} })
    }
  })
  const host = await request<{ hostCapabilities?: Record<string, unknown>; hostContext?: Record<string, unknown> }>('ui/initialize', {
    appInfo: { name, version: '1' }, appCapabilities: {}, protocolVersion: '2026-01-26',
  })
  capabilities = host.hostCapabilities ?? {}
  adapt(host.hostContext)
  post({ method: 'ui/notifications/initialized' })
  new ResizeObserver(() => {
    const { width, height } = document.documentElement.getBoundingClientRect()
    post({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } })
  }).observe(document.documentElement)
}

function adapt(context?: Record<string, unknown>): void {
  if (context?.theme === 'light' || context?.theme === 'dark') document.documentElement.style.colorScheme = context.theme
}

/** Calls the tool of ours that only Apps call, about what the key is for. */
export async function act<T>(key: string, action: string, more: Record<string, unknown> = {}): Promise<{ data: T; text: string }> {
  const r = await request<Result>('tools/call', { name: 'app_call', arguments: { key, action, ...more } })
  const text = (r.content ?? []).map((c) => c.text ?? '').join('\n')
  if (r.isError) throw new Error(text)
  return { data: r.structuredContent as T, text }
}

/** Opens an address in the browser of the person. */
export const openLink = (url: string) => request('ui/open-link', { url })

/** Tells the model what has become of it. */
export function tellModel(text: string): void {
  if (can('updateModelContext')) void request('ui/update-model-context', { content: [{ type: 'text', text }] }).catch(() => undefined)
}

/** The part of a result that is for the App. */
export const grantOf = (r: Result) => r._meta?.['luanette/app'] as Grant | undefined

type Child = Node | string | number | false | undefined

/** An element. What it shows is text, never markup. */
export function h(tag: string, props: Record<string, unknown> = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === 'function') element.addEventListener(name, value as EventListener)
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.filter((c): c is Node | string | number => c !== false && c !== undefined).map((c) => (c instanceof Node ? c : String(c))))
  return element
}

/** Replaces what the page shows. */
export const render = (...children: Child[]) => document.body.replaceChildren(...h('div', {}, ...children).childNodes)
