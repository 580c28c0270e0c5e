// A graph of ancestors and descendants, parents above their children.

export interface TreeNode {
  id: string
  label: string
  href: string
  parent?: string
  about?: string // tooltip
}

const width = 150, height = 34, gapX = 14, gapY = 30

interface Placed extends TreeNode {
  x: number
  y: number
}

/** Draws the graph; `chosen` is the highlighted node. */
export function Tree({ nodes, chosen, label }: { nodes: TreeNode[]; chosen: string; label: string }) {
  const placed = place(nodes)
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

/** Places each generation in a row, and parents above the middle of their children. */
function place(nodes: TreeNode[]): Placed[] {
  const known = new Set(nodes.map((k) => k.id))
  const under = new Map<string, TreeNode[]>()
  for (const k of nodes) {
    const parent = k.parent !== undefined && known.has(k.parent) ? k.parent : ''
    under.set(parent, [...(under.get(parent) ?? []), k])
  }
  const placed: Placed[] = []
  const seen = new Set<string>()
  let column = 0
  const walk = (k: TreeNode, depth: number): number => {
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
