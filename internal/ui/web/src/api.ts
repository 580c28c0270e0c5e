// The server's doors: who we are there, and how to ask without being refused.
import { signal } from '@preact/signals'

/** Who the server says we are. */
export interface Me {
  id: string
  name: string
  scopes: string[]
  open: boolean // nobody needs a key here
  expires?: string
  csrf_token?: string
}

/** Undefined before we know, null when somebody has to log in. */
export const me = signal<Me | null | undefined>(undefined)

/** Thrown when the server wants a key. */
export class Unauthorized extends Error {
  constructor() {
    super('a key is needed')
  }
}

/** Asks who we are; a server that is away leaves us who we were. */
export async function whoAmI(): Promise<Me | null | undefined> {
  try {
    const answer = await fetch('/api/v1/me', { credentials: 'same-origin' })
    if (answer.ok) me.value = (await answer.json()) as Me
    else if (answer.status === 401) me.value = null
  } catch {
    return undefined
  }
  return me.value
}

/** Turns a key into a session of this browser. */
export async function login(key: string): Promise<void> {
  const answer = await fetch('/api/v1/login', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }), credentials: 'same-origin' })
  if (!answer.ok) throw await refusal(answer)
  me.value = (await answer.json()) as Me
}

export async function logout(): Promise<void> {
  await ask('/api/v1/logout', { method: 'POST' })
  me.value = null
}

/** Whether we may do what a scope allows. */
export function may(scope: string): boolean {
  return me.value?.open === true || me.value?.scopes.some((s) => s === scope || s === 'admin') === true
}

function send(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers)
  if (me.value?.csrf_token && init.method && init.method !== 'GET') headers.set('X-CSRF-Token', me.value.csrf_token)
  return fetch(path, { ...init, headers, credentials: 'same-origin' })
}

/**
 * Asks the server. A session that has ended shows the login; one that was begun
 * anew in another tab has another token, so that we find out and ask again.
 */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let answer = await send(path, init)
  if (answer.status === 403 && me.value?.csrf_token) {
    const token = me.value.csrf_token
    if ((await whoAmI())?.csrf_token !== token && me.value) answer = await send(path, init)
  }
  if (answer.status === 401) {
    me.value = null
    throw new Unauthorized()
  }
  return answer
}

/** Gets JSON; an answer that is no success is thrown with what the server says. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await ask(path, { signal })
  if (!answer.ok) throw await refusal(answer)
  return (await answer.json()) as T
}

/** Sends JSON and reads the answer. */
export async function post<T>(path: string, body: unknown, method = 'POST'): Promise<T> {
  const answer = await ask(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  if (!answer.ok) throw await refusal(answer)
  return (await answer.json()) as T
}

/** Why the server did not answer, in its own words where it has some. */
export async function refusal(answer: Response): Promise<Error> {
  const text = await answer.text()
  try {
    const body = JSON.parse(text) as { message?: string; hint?: string; error?: string | { message?: string; hint?: string } }
    const said = typeof body.error === 'object' ? body.error : body
    if (said.message) return new Error(said.hint ? `${said.message} (${said.hint})` : said.message)
  } catch {
    // not JSON
  }
  return new Error(`the server answered ${answer.status}`)
}
