// Logins of the user to servers that everybody uses with an account of their own.
import { getIfAny, post } from './api'

export interface OwnLogin {
  upstream: string
  state: 'none' | 'active' | 'needs_login'
  account?: string
  scopes?: string[]
  expires?: string
  connect: string // the page on which the user logs in
}

/** Events after which the logins may be others. */
export const loginEvents = ['upstream.', 'login.', 'config.']

export const loadLogins = async (signal: AbortSignal) => (await getIfAny<{ logins?: OwnLogin[] }>('/api/v1/me/logins', signal))?.logins ?? []

export const endLogin = (name: string) => post(`/api/v1/me/logins/${encodeURIComponent(name)}`, undefined, 'DELETE')

/** Whether the user has to log in before the tools of the server can be called. */
export const isNeeded = (l: OwnLogin) => l.state !== 'active'
