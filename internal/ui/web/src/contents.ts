// What a stored content is to people: by its type, by its name, or by what is in it.

export type View = 'markdown' | 'json' | 'table' | 'code' | 'text' | 'image' | 'audio' | 'video' | 'midi' | 'abc' | 'unknown'

/** The view of a content. One without a type may be text: its first bytes tell. */
export function viewOf(type: string, name = ''): View {
  const kind = type.split(';')[0].trim().toLowerCase()
  const extension = /\.([a-z0-9]+)$/i.exec(name)?.[1].toLowerCase()
  if (kind.includes('midi')) return 'midi'
  if (kind === 'text/vnd.abc') return 'abc'
  if (kind.startsWith('image/')) return 'image'
  if (kind.startsWith('audio/')) return 'audio'
  if (kind.startsWith('video/')) return 'video'
  if (kind === 'text/markdown' || (kind === 'text/plain' && extension === 'md')) return 'markdown'
  if (kind === 'text/csv' || kind === 'text/tab-separated-values' || (kind === 'text/plain' && extension === 'csv')) return 'table'
  if (kind === 'application/json' || kind.endsWith('+json')) return 'json'
  if (kind.includes('lua') || kind.includes('javascript') || kind.includes('typescript')) return 'code'
  return kind.startsWith('text/') ? 'text' : 'unknown'
}

const names: Record<string, string> = {
  'text/markdown': 'Markdown', 'text/csv': 'CSV', 'text/tab-separated-values': 'TSV', 'text/plain': 'Text', 'text/html': 'HTML', 'application/json': 'JSON', 'application/pdf': 'PDF',
  'image/svg+xml': 'SVG', 'image/jpeg': 'JPEG', 'audio/x-wav': 'WAV', 'audio/mpeg': 'MP3', 'audio/midi': 'MIDI', 'audio/x-midi': 'MIDI', 'text/vnd.abc': 'ABC',
  'text/x-lua': 'Lua', 'text/javascript': 'JavaScript', 'text/typescript': 'TypeScript', 'application/octet-stream': 'Bytes',
}

/** The name of a type as people say it. */
export function typeName(type: string): string {
  const kind = type.split(';')[0].trim().toLowerCase()
  return names[kind] ?? (kind.split('/').pop() || 'file').replace(/^(x|vnd)[-.]/, '').toUpperCase()
}

/** The text of bytes, unless they are something else. A cut in the last letter counts for nothing. */
export function textOf(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(bytes)
  const strange = [...text.slice(0, -4)].filter((c) => c === '\ufffd' || (c < ' ' && !'\n\r\t'.includes(c))).length
  return strange === 0 ? text.replace(/\ufffd{1,4}$/, '') : undefined
}

/** The rows of comma or tab separated values. The last one is left out when the text was cut there. */
export function readTable(text: string, cut = false, limit = 1000): string[][] {
  const comma = text.slice(0, text.indexOf('\n') + 1 || undefined).includes('\t') ? '\t' : ','
  const rows: string[][] = []
  let row: string[] = [], field = '', quoted = false
  const endRow = () => {
    row.push(field)
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
    field = ''
  }
  for (let i = 0; i < text.length && rows.length < limit; i++) {
    const c = text[i]
    if (quoted && c === '"' && text[i + 1] === '"') field += text[++i]
    else if (c === '"') quoted = !quoted
    else if (quoted) field += c
    else if (c === comma) {
      row.push(field)
      field = ''
    } else if (c === '\n') endRow()
    else if (c !== '\r') field += c
  }
  if (!cut && rows.length < limit) endRow()
  return rows
}

/** A value as rows of a table, the names of the columns first; undefined if it is no list of like objects. */
export function tableOf(value: unknown, limit = 500): string[][] | undefined {
  if (!Array.isArray(value) || value.length === 0 || !value.every((v) => v !== null && typeof v === 'object' && !Array.isArray(v))) return undefined
  const rows = value.slice(0, limit) as Record<string, unknown>[]
  const columns = [...new Set(rows.flatMap((r) => Object.keys(r)))]
  const alike = rows.every((r) => Object.keys(r).length * 2 > columns.length)
  if (columns.length === 0 || columns.length > 12 || !alike) return undefined
  return [columns, ...rows.map((r) => columns.map((c) => cellOf(r[c])))]
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Whether a column has numbers only: they stand at the right. */
export function isNumeric(rows: string[][], column: number): boolean {
  return rows.some((r) => r[column]) && rows.every((r) => !r[column] || /^-?[\d,]*\.?\d+%?$/.test(r[column]))
}
