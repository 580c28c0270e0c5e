const looks: Record<string, string> = {
  connected: 'good', complete: 'good', up: 'good', allowed: 'good', active: 'good', healthy: 'good',
  failed: 'bad', reconnecting: 'bad', needs_auth: 'bad', gone: 'bad', silent: 'bad', denied: 'bad', changed: 'bad',
  running: 'now',
  cancelled: 'warn', waiting: 'warn', pending: 'warn', held: 'warn', draining: 'warn', removed: 'warn', connecting: 'warn',
}

/** How something is, in a word that is seen from afar. */
export function State({ state }: { state: string }) {
  return <span class={`state ${looks[state] ?? 'soft'}`}>{state.replaceAll('_', ' ')}</span>
}
