// What calling a tool does. What its server does not say is taken for the worst.
interface Hinted {
  read_only?: boolean
  destructive?: boolean
}

export const effectOf = (t: Hinted) => (t.read_only ? 'reads' : t.destructive ? 'may delete' : 'writes')

export function Effect({ tool: t }: { tool: Hinted }) {
  const effect = effectOf(t)
  return <span class={effect === 'reads' ? 'soft' : effect === 'writes' ? 'warn' : 'bad'}>{effect}</span>
}
