// Rows of about the height of those to come, while they are loaded. They appear only if that takes a moment.
export function Skeleton({ rows = 4 }: { rows?: number }) {
  return <div class="skeletons" role="status" aria-label="Loading">{Array.from({ length: rows }, (_, n) => <div key={n} class="skeleton" />)}</div>
}
