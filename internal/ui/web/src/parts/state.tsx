const classes: Record<string, string> = {
  connected: 'good', complete: 'good', up: 'good', allowed: 'good', active: 'good', healthy: 'good', strict: 'good',
  failed: 'bad', reconnecting: 'bad', needs_auth: 'bad', gone: 'bad', silent: 'bad', denied: 'bad', changed: 'bad', refused: 'bad',
  running: 'now',
  cancelled: 'warn', waiting: 'warn', pending: 'warn', held: 'warn', draining: 'warn', removed: 'warn', connecting: 'warn', starting: 'warn', untrusted: 'warn', off: 'warn',
}

/** States that are shown by another name. */
const labels: Record<string, string> = { held: 'awaiting review', removed: 'disabled' }

/** A coloured state. */
export function State({ state }: { state: string }) {
  return <span class={`state ${classes[state] ?? 'soft'}`}>{labels[state] ?? state.replaceAll('_', ' ')}</span>
}
