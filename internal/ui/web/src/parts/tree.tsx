// Who was made from whom, as a graph: parents over their children.

export interface Kin {
  id: string
  label: string
  href: string
  parent?: string
  about?: string // more of it, for who looks closer
}

const width = 150, height = 34, gapX = 14, gapY = 30

interface Placed extends Kin {
  x: number
  y: number
}

/** The graph of a family; `chosen` is the one it is about. */
export function Tree({ family, chosen, label }: { family: Kin[]; chosen: string; label: string }) {
  const placed = place(family)
  const at = new Map(placed.map((p) => [p.id, p]))
  const right = Math.max(...placed.map((p) => p.x)) + width
  const bottom = Math.max(...placed.map((p) => p.y)) + height
  return (
    <div class="scroll">
      <svg class="tree" viewBox={`-2 -2 ${right + 4} ${bottom + 4}`} width={right + 4} height={bottom + 4} role="group" aria-label={label}>
        {placed.map((p) => {
          const from = p.parent === undefined ? undefined : at.get(p.parent)
          return from && (
            <path key={p.id} d={`M${from.x + width / 2},${from.y + height} C${from.x + width / 2},${from.y + height + gapY / 2} ${p.x + width / 2},${p.y - gapY / 2} ${p.x + width / 2},${p.y}`} />
          )
        })}
        {placed.map((p) => (
          <a key={p.id} href={p.href} aria-current={p.id === chosen ? 'true' : undefined}>
            <title>{p.about ? `${p.label}: ${p.about}` : p.label}</title>
            <rect x={p.x} y={p.y} width={width} height={height} rx={6} />
            <text x={p.x + width / 2} y={p.y + height / 2 + 5} text-anchor="middle">{p.label.length > 20 ? `${p.label.slice(0, 19)}…` : p.label}</text>
          </a>
        ))}
      </svg>
    </div>
  )
}

/** Each generation a row; parents over the middle of their children. */
function place(family: Kin[]): Placed[] {
  const known = new Set(family.map((k) => k.id))
  const under = new Map<string, Kin[]>()
  for (const k of family) {
    const parent = k.parent !== undefined && known.has(k.parent) ? k.parent : ''
    under.set(parent, [...(under.get(parent) ?? []), k])
  }
  const placed: Placed[] = []
  const seen = new Set<string>()
  let column = 0
  const walk = (k: Kin, depth: number): number => {
    seen.add(k.id)
    const children = (under.get(k.id) ?? []).filter((c) => !seen.has(c.id))
    const places = children.map((c) => walk(c, depth + 1))
    const x = places.length > 0 ? (places[0] + places[places.length - 1]) / 2 : column++ * (width + gapX)
    placed.push({ ...k, x, y: depth * (height + gapY) })
    return x
  }
  for (const root of under.get('') ?? []) walk(root, 0)
  return placed
}
