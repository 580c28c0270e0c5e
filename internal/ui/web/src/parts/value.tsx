// A value of a result as people read it: like objects as a table, Markdown as text, the rest as a tree.
import { tableOf } from '../contents'
import { Grid } from './grid'
import { Json } from './json'
import { Markdown } from './markdown'

export function Value({ value }: { value: unknown }) {
  const rows = tableOf(value)
  if (rows) return <Grid rows={rows} label="Rows" />
  if (typeof value === 'string' && value.includes('\n')) return /^(#+ |[-*] |\|)/m.test(value) ? <Markdown text={value} /> : <pre>{value}</pre>
  return <Json value={value} />
}
