// A form for a tool's arguments, generated from its schema.
import { useId } from 'preact/hooks'
import type { Schema } from '../mcp'

export type Values = Record<string, unknown>

export function Form({ schema, values, change }: { schema: Schema; values: Values; change: (v: Values) => void }) {
  const names = Object.keys(schema.properties ?? {})
  if (names.length === 0) return <p class="soft">This tool takes no arguments.</p>
  return (
    <>
      {names.map((name) => (
        <Field key={name} name={name} schema={schema.properties![name]} required={schema.required?.includes(name) ?? false}
          value={values[name]} change={(v) => {
            const next = { ...values }
            if (v === undefined) delete next[name]
            else next[name] = v
            change(next)
          }} />
      ))}
    </>
  )
}

interface FieldProps {
  name: string
  schema: Schema
  required: boolean
  value: unknown
  change: (v: unknown) => void
}

function Field({ name, schema, required, value, change }: FieldProps) {
  const id = useId()
  const type = Array.isArray(schema.type) ? schema.type.find((t) => t !== 'null') : schema.type
  return (
    <div class="field">
      <label for={id}><code>{name}</code>{required ? ' (required)' : ''} {schema.description && <span class="soft">{schema.description}</span>}</label>
      <Input id={id} type={type} schema={schema} value={value} change={change} />
    </div>
  )
}

function Input({ id, type, schema, value, change }: { id: string; type?: string; schema: Schema; value: unknown; change: (v: unknown) => void }) {
  if (schema.enum) {
    return (
      <select id={id} value={JSON.stringify(value) ?? ''} onChange={(e) => change(e.currentTarget.value === '' ? undefined : JSON.parse(e.currentTarget.value))}>
        <option value="">…</option>
        {schema.enum.map((v) => <option key={String(v)} value={JSON.stringify(v)}>{String(v)}</option>)}
      </select>
    )
  }
  switch (type) {
    case 'boolean':
      return (
        <select id={id} value={value === undefined ? '' : String(value)} onChange={(e) => change(e.currentTarget.value === '' ? undefined : e.currentTarget.value === 'true')}>
          <option value="">…</option><option value="true">true</option><option value="false">false</option>
        </select>
      )
    case 'integer':
    case 'number':
      return <input id={id} type="number" step={type === 'integer' ? 1 : 'any'} min={schema.minimum} max={schema.maximum}
        value={value === undefined ? '' : String(value)} onInput={(e) => change(e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value))} />
    case 'string':
      return <textarea id={id} rows={1} value={String(value ?? '')} onInput={(e) => change(e.currentTarget.value === '' ? undefined : e.currentTarget.value)} />
    default:
      return <JsonInput id={id} value={value} change={change} />
  }
}

/** Arrays, objects and values without a type are entered as JSON. */
function JsonInput({ id, value, change }: { id: string; value: unknown; change: (v: unknown) => void }) {
  return (
    <textarea id={id} rows={2} placeholder="JSON" defaultValue={value === undefined ? '' : JSON.stringify(value)}
      onInput={(e) => {
        const field = e.currentTarget
        try {
          change(field.value.trim() === '' ? undefined : JSON.parse(field.value))
          field.setCustomValidity('')
        } catch (error) {
          field.setCustomValidity(`not JSON: ${(error as Error).message}`)
        }
        field.reportValidity()
      }} />
  )
}
