// Rows of values as a table, with the names of the columns in the first row.
import { isNumeric } from '../contents'

export function Grid({ rows: [head, ...rows], label }: { rows: string[][]; label: string }) {
  const numeric = head.map((_, i) => i > 0 && isNumeric(rows, i))
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table class="grid">
        <thead><tr>{head.map((h, i) => <th key={i} class={numeric[i] ? 'num' : ''}>{h}</th>)}</tr></thead>
        <tbody>{rows.map((r, n) => <tr key={n}>{head.map((_, i) => <td key={i} class={numeric[i] ? 'num' : ''}>{r[i]}</td>)}</tr>)}</tbody>
      </table>
    </div>
  )
}
