// Types of JSON schemas as people read them.
import type { Schema } from './mcp'

/** The type that a schema describes, such as `string[]` or `"a" | "b"`. */
export function typeText(s: Schema | undefined): string {
  if (s === undefined || typeof s !== 'object') return 'any'
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(' | ')
  if ('const' in s) return JSON.stringify(s.const)
  const several = (s.anyOf ?? s.oneOf) as Schema[] | undefined
  if (several) return several.map(typeText).join(' | ')
  const types = Array.isArray(s.type) ? s.type : [s.type ?? (s.properties ? 'object' : 'any')]
  return types.map((t) => (t === 'array' ? `${typeText(s.items)}[]` : t)).join(' | ')
}

/** A text with its invisible characters shown: a definition must not hide anything from who reviews it. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, (c) => (c === '\n' || c === '\t' ? c : `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`))
}
