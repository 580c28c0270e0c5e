// A table that people sort, and that stays fast with thousands of rows: rows are drawn
// as they come into view.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useFilter } from '../route'

export interface Column<T> {
  name: string
  value?: (row: T) => string | number // what it is sorted by; without it the column is not sorted
  cell: (row: T) => ComponentChildren
  number?: boolean
  class?: string
}

/** How many rows are drawn first, and added each time the end comes into view. */
const chunk = 100

export function Table<T>({ label, rows, columns, id, sort = '', first = chunk }: { label: string; rows: T[]; columns: Column<T>[]; id: (row: T) => string | number; sort?: string; first?: number }) {
  const [order, setOrder] = useFilter('sort', sort)
  const [drawn, setDrawn] = useState(first)
  const end = useRef<HTMLDivElement>(null)
  const sorted = sortRows(rows, columns, order)
  useEffect(() => {
    const watch = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && setDrawn((n) => n + chunk), { rootMargin: '400px' })
    if (end.current) watch.observe(end.current)
    return () => watch.disconnect()
  }, [drawn, rows.length])
  return (
    <div class="scroll">
      <table class="stack" aria-label={label}>
        <thead><tr>{columns.map((c) => <Head key={c.name} column={c} order={order} change={setOrder} />)}</tr></thead>
        <tbody>
          {sorted.slice(0, drawn).map((row) => (
            <tr key={id(row)}>{columns.map((c) => <td key={c.name} data-label={c.number ? c.name : undefined} class={[c.number && 'num', c.class].filter(Boolean).join(' ')}>{c.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {drawn < sorted.length && <div ref={end} class="soft">…</div>}
    </div>
  )
}

function Head<T>({ column: c, order, change }: { column: Column<T>; order: string; change: (order: string) => void }) {
  const shown = c.name.startsWith('(') ? <span class="hidden">{c.name.slice(1, -1)}</span> : c.name
  if (!c.value) return <th class={c.number ? 'num' : ''}>{shown}</th>
  const up = order === c.name, down = order === `-${c.name}`
  const next = up || (c.number && !down) ? `-${c.name}` : c.name // numbers begin with the largest
  return (
    <th class={c.number ? 'num' : ''} aria-sort={up ? 'ascending' : down ? 'descending' : 'none'}>
      <button type="button" class="sort" onClick={() => change(next)}>{shown}{up ? ' ↑' : down ? ' ↓' : ''}</button>
    </th>
  )
}

/** The rows in an order: the name of a column, after a minus if it falls. */
export function sortRows<T>(rows: T[], columns: Column<T>[], order: string): T[] {
  const falling = order.startsWith('-')
  const value = columns.find((c) => c.name === (falling ? order.slice(1) : order))?.value
  if (!value) return rows
  const compare = (a: string | number, b: string | number) => (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }))
  return [...rows].sort((a, b) => (falling ? compare(value(b), value(a)) : compare(value(a), value(b))))
}
