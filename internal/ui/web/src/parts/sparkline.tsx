/** A small line chart. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const width = 240, height = 32
  const max = Math.max(...values, 1)
  const step = width / Math.max(values.length - 1, 1)
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(height - 2 - (v / max) * (height - 4)).toFixed(1)}`).join(' ')
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      {values.length > 1 && <><polygon points={`0,${height} ${points} ${width},${height}`} /><polyline points={points} /></>}
    </svg>
  )
}
