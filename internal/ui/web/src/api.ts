// Requests to the server's HTTP API, with the session and its CSRF token.
import { signal } from '@preact/signals'

/** The user of this session. */
export interface Me {
  id: string
  name: string
  org?: string
  orgs?: string[] // of a person who can choose; an empty one is the server itself
  roles?: string[] // of a person in the organisation
  user?: string // the person of a key that is one person's
  client?: string // by which the person acts, such as a key
  scopes: string[]
  open: boolean // the server requires no key
  has?: string[] // what not every server has: people who sign in, music
  expires?: string
  csrf_token?: string
}

/** Undefined until loaded, null if a login is required. */
export const me = signal<Me | null | undefined>(undefined)

/** The command with which the owner of a server without keys signs this browser in; empty if it requires a key. */
export const openCommand = signal('')

/** The server's time when the page was opened: what is newer than the data that was loaded then. */
export let opened = Date.now()

/** Thrown when the server requires a login. */
export class Unauthorized extends Error {
  constructor() {
    super('login required')
  }
}

/** Where the browser finds a path of the server, whose address may have a path of its own. */
export const urlOf = (path: string) => `.${path}`

/** The server's address, without a slash at the end. */
export const home = () => new URL('.', location.href).href.replace(/\/$/, '')

/** Loads the user. If the server is unreachable, `me` stays as it is. */
export async function loadMe(): Promise<Me | null | undefined> {
  try {
    const response = await fetch(urlOf('/api/v1/me'), { credentials: 'same-origin' })
    if (me.value === undefined) opened = Date.parse(response.headers.get('Date') ?? '') || opened
    if (response.ok) me.value = (await response.json()) as Me
    else if (response.status === 401) {
      openCommand.value = ((await response.json()) as { open?: string }).open ?? ''
      me.value = null
    }
  } catch {
    return undefined
  }
  return me.value
}

/** Starts a session with an API key. */
export async function login(key: string): Promise<void> {
  const response = await fetch(urlOf('/api/v1/login'), { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }), credentials: 'same-origin' })
  if (!response.ok) throw await errorOf(response)
  me.value = (await response.json()) as Me
}

/** Continues the session in another organisation of its person. Everything that is shown belongs to the other one, so the page begins anew. */
export async function chooseOrg(org: string): Promise<void> {
  await post<Me>('/api/v1/me/org', { org })
  location.reload()
}

export async function logout(): Promise<void> {
  await request('/api/v1/logout', { method: 'POST' })
  me.value = null
}

/** Whether the user has a scope. In an organisation, administrators are those of the organisation, not of the server. */
export function may(scope: string): boolean {
  const { open, org, scopes = [] } = me.value ?? {}
  if (open) return true
  if (org && (scope === 'admin' || scope === 'metrics')) return false
  return scopes.includes('admin') || (scopes.includes(scope) && (scope !== 'org' || !!org)) || (scope === 'chat' && !!org && scopes.includes('org'))
}

/** Thrown when the server cannot be reached. The banner says so, too. */
export class Unreachable extends Error {
  constructor() {
    super('the server cannot be reached')
  }
}

/** While the page is left: requests that begin then are to arrive. */
let leaving = false
globalThis.addEventListener?.('pagehide', () => { leaving = true }) // tests of modules have none
globalThis.addEventListener?.('pageshow', () => { leaving = false })

async function send(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers)
  if (me.value?.csrf_token && init.method && init.method !== 'GET') headers.set('X-CSRF-Token', me.value.csrf_token)
  try {
    return await fetch(urlOf(path), { ...init, headers, credentials: 'same-origin', keepalive: leaving })
  } catch (e) {
    throw e instanceof TypeError ? new Unreachable() : e // TypeError is all that browsers tell
  }
}

/**
 * Sends a request. An expired session shows the login page. After a new login in
 * another tab the CSRF token differs: the request is repeated with the new one.
 */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response = await send(path, init)
  if (response.status === 403 && me.value?.csrf_token) {
    const token = me.value.csrf_token
    if ((await loadMe())?.csrf_token !== token && me.value) response = await send(path, init)
  }
  if (response.status === 401) {
    await loadMe() // it says how to sign in
    me.value = null
    throw new Unauthorized()
  }
  return response
}

/** Requests that were sent before anything was drawn. */
const early = new Map<string, Promise<Response>>()

/** Sends requests that the first page is going to make, all at once. */
export function begin(paths: string[]): void {
  for (const path of paths) {
    const response = request(path)
    response.catch(() => undefined) // whoever gets it is told
    early.set(path, response)
    setTimeout(() => early.delete(path), 5000) // nobody wanted it: it is old
  }
}

/** Gets JSON; throws the server's error message if the response is an error. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const begun = early.get(path)
  early.delete(path)
  const response = await (begun ?? request(path, { signal }))
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as T
}

/** Gets JSON of something that not every server has, or not everybody: undefined then. */
export async function getIfAny<T>(path: string, signal?: AbortSignal): Promise<T | undefined> {
  const response = await request(path, { signal })
  if (response.status === 404 || response.status === 403) {
    await response.text() // an answer that nobody reads stays open
    return undefined
  }
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as T
}

/** Sends JSON and returns the JSON response. */
export async function post<T>(path: string, body: unknown, method = 'POST'): Promise<T> {
  const response = await request(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  if (!response.ok) throw await errorOf(response)
  return (await response.json()) as T
}

/** Thrown for a value that is not valid: it says which field it is of. */
export class InvalidField extends Error {
  constructor(message: string, readonly field: string) {
    super(message)
  }
}

/** The error of a response, with the server's message if it has one. */
export async function errorOf(response: Response): Promise<Error> {
  const text = await response.text()
  try {
    const body = JSON.parse(text) as { message?: string; hint?: string; details?: { field?: string }; error?: string | { message?: string; hint?: string } }
    const fault = typeof body.error === 'object' ? body.error : body
    const message = fault.hint ? `${fault.message} (${fault.hint})` : fault.message
    if (message && body.details?.field) return new InvalidField(message, body.details.field)
    if (message) return new Error(message)
  } catch {
    // not JSON
  }
  return new Error(`the server responded with status ${response.status}`)
}
