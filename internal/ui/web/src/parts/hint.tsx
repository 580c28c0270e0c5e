/** A short explanation; text between `backticks` is code. */
export function Hint({ children }: { children: string }) {
  return <p class="soft hint">{children.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</p>
}
