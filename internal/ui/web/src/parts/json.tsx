const artifact = /^artifact_[0-9a-f]{12,64}$/

/** A single value. Artifact ids are links. */
function Leaf({ value }: { value: unknown }) {
  const text = JSON.stringify(value) ?? 'undefined'
  return typeof value === 'string' && artifact.test(value) ? <a href={`#/artifacts/${value}`}>{text}</a> : <>{text}</>
}

/** A value as a tree that opens and closes. All values are shown as text, never as HTML. */
export function Json({ value, name, depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  const label = name === undefined ? null : <span class="soft">{name}: </span>
  if (value === null || typeof value !== 'object') {
    return <div class="mono">{label}<Leaf value={value} /></div>
  }
  const entries = Object.entries(value)
  const brief = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`
  if (entries.length === 0) return <div class="mono">{label}{Array.isArray(value) ? '[]' : '{}'}</div>
  return (
    <details class="json mono" open={depth < 2 && entries.length <= 50}>
      <summary>{label}{brief}</summary>
      <div>
        {entries.slice(0, 500).map(([k, v]) => <Json key={k} name={k} value={v} depth={depth + 1} />)}
        {entries.length > 500 && <div class="soft">and {entries.length - 500} more</div>}
      </div>
    </details>
  )
}
