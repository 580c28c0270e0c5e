// JSON with exact large integers: a JavaScript number holds only 53 bits.

interface ExactJSON {
  parse(text: string, read: (key: string, value: unknown, context?: { source?: string }) => unknown): unknown
  rawJSON?(text: string): unknown
}

const json = JSON as unknown as ExactJSON
const long = /\d{16}/

/** JSON.parse, with a bigint where an integer is too large for a number. */
export function parseExact<T>(text: string): T {
  if (!long.test(text)) return JSON.parse(text) as T
  return json.parse(text, (_, value, context) =>
    (typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '') ? BigInt(context!.source!) : value)) as T
}

// JSON.stringify throws on a bigint that has no toJSON.
Object.defineProperty(BigInt.prototype, 'toJSON', { value(this: bigint) { return json.rawJSON ? json.rawJSON(String(this)) : Number(this) } })
