// What calling a tool does, as far as its server says.
interface Hinted {
  read_only?: boolean
  destructive?: boolean
  unmarked?: boolean
}

export const effectOf = (t: Hinted) => (t.read_only ? 'reads' : t.destructive ? 'may delete' : t.unmarked ? 'not marked' : 'writes')

const looks = { reads: 'soft', 'not marked': 'soft', writes: 'warn', 'may delete': 'bad' }

export function Effect({ tool: t }: { tool: Hinted }) {
  const effect = effectOf(t)
  return <span class={looks[effect]} title={effect === 'not marked' ? 'its server does not say whether it reads, writes or deletes: rules and approvals take it for one that may delete' : undefined}>{effect}</span>
}
