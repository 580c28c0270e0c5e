const classes: Record<string, string> = {
  connected: 'good', complete: 'good', up: 'good', allowed: 'good', active: 'good', healthy: 'good', strict: 'good', delivered: 'good',
  failed: 'bad', reconnecting: 'bad', needs_auth: 'bad', gone: 'bad', silent: 'bad', denied: 'bad', changed: 'bad', refused: 'bad',
  running: 'now', playing: 'now',
  cancelled: 'warn', waiting: 'warn', pending: 'warn', held: 'warn', draining: 'warn', removed: 'warn', connecting: 'warn', installing: 'warn', starting: 'warn', untrusted: 'warn', off: 'warn', paused: 'warn', needs_login: 'warn', none: 'warn',
  blocked: 'bad', expired: 'warn', revoked: 'soft',
}

/** States that are shown by another name. */
const labels: Record<string, string> = { held: 'awaiting review', removed: 'disabled', needs_login: 'needs your login', none: 'needs your login', complete: 'done', pending: 'queued', waiting: 'waits' }

/** The word for a state. */
export const stateWord = (state: string): string => labels[state] ?? state.replaceAll('_', ' ')

/** A coloured state. */
export function State({ state }: { state: string }) {
  return <span class={`state ${classes[state] ?? 'soft'}`}>{stateWord(state)}</span>
}
