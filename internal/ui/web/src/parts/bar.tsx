/** A time span in a timeline; from and size are fractions of the whole. */
export function Bar({ from, size, bad }: { from: number; size: number; bad?: boolean }) {
  const left = Math.min(Math.max(from, 0), 0.995)
  return <span class={`bar ${bad ? 'bad' : ''}`} style={{ left: `${left * 100}%`, width: `${Math.min(Math.max(size, 0.002), 1 - left) * 100}%` }} />
}
