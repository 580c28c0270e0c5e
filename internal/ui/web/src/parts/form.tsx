// A form for a tool's arguments, generated from its schema.
import { useEffect, useId, useState } from 'preact/hooks'
import type { Schema } from '../mcp'

export type Values = Record<string, unknown>
export type Problems = Record<string, string>

/** What is wrong with values before they are sent, by the names of the fields: those that are missing, and numbers out of range. */
export function problemsOf(schema: Schema | undefined, values: Values): Problems {
  const found: Problems = {}
  for (const [name, s] of Object.entries(schema?.properties ?? {})) {
    const value = values[name]
    const least = s.minimum ?? -Infinity, most = s.maximum ?? Infinity
    if (value === undefined && schema?.required?.includes(name) && !('default' in s)) found[name] = 'This field is required.'
    else if (typeof value === 'number' && (value < least || value > most)) found[name] = `A number ${least === -Infinity ? `up to ${most}` : most === Infinity ? `from ${least}` : `from ${least} to ${most}`} is needed.`
    else if (typeof value === 'number' && typeOf(s) === 'integer' && !Number.isInteger(value)) found[name] = 'A whole number is needed.'
  }
  return found
}

/** Checks values before they are sent. Problems are shown from the first attempt on, and the first field that has one gets the focus. */
export function useCheck(schema: Schema | undefined, values: Values): { problems: Problems; valid: () => boolean } {
  const [tried, setTried] = useState(0)
  const problems = tried > 0 ? problemsOf(schema, values) : {}
  useEffect(() => {
    if (tried > 0) document.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [tried])
  const valid = () => {
    const ok = Object.keys(problemsOf(schema, values)).length === 0
    setTried((n) => (ok ? 0 : n + 1))
    return ok
  }
  return { problems, valid }
}

export function Form({ schema, values, change, problems = {} }: { schema: Schema; values: Values; change: (v: Values) => void; problems?: Problems }) {
  const names = Object.keys(schema.properties ?? {})
  if (names.length === 0) return <p class="soft">This tool takes no arguments.</p>
  return (
    <>
      {names.map((name) => (
        <Field key={name} name={name} schema={schema.properties![name]} required={schema.required?.includes(name) ?? false}
          value={values[name]} problem={problems[name]} change={(v) => {
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
  problem?: string
  change: (v: unknown) => void
}

function typeOf(schema: Schema): string | undefined {
  return Array.isArray(schema.type) ? schema.type.find((t) => t !== 'null') : schema.type
}

function Field({ name, schema, required, value, problem, change }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}><code>{name}</code>{required ? ' (required)' : ''} {schema.description && <span class="soft">{schema.description}</span>}</label>
      <Input id={id} schema={schema} value={value} change={change} marks={{ 'aria-invalid': problem ? 'true' : undefined, 'aria-describedby': problem ? `${id}-problem` : undefined }} />
      {problem && <p class="bad small problem" id={`${id}-problem`} role="alert">{problem}</p>}
    </div>
  )
}

interface InputProps {
  id: string
  schema: Schema
  value: unknown
  marks: { 'aria-invalid'?: 'true'; 'aria-describedby'?: string }
  change: (v: unknown) => void
}

function Input({ id, schema, value, marks, change }: InputProps) {
  if (schema.enum) {
    return (
      <select id={id} {...marks} value={JSON.stringify(value) ?? ''} onChange={(e) => change(e.currentTarget.value === '' ? undefined : JSON.parse(e.currentTarget.value))}>
        <option value="">…</option>
        {schema.enum.map((v) => <option key={String(v)} value={JSON.stringify(v)}>{String(v)}</option>)}
      </select>
    )
  }
  const type = typeOf(schema)
  switch (type) {
    case 'boolean':
      return (
        <select id={id} {...marks} value={value === undefined ? '' : String(value)} onChange={(e) => change(e.currentTarget.value === '' ? undefined : e.currentTarget.value === 'true')}>
          <option value="">…</option><option value="true">true</option><option value="false">false</option>
        </select>
      )
    case 'integer':
    case 'number':
      return <input id={id} {...marks} type="number" step="any" placeholder={placeholder(schema)}
        value={value === undefined ? '' : String(value)} onInput={(e) => change(e.currentTarget.value === '' ? undefined : Number(e.currentTarget.value))} />
    case 'string':
      return <textarea id={id} {...marks} rows={1} placeholder={placeholder(schema)} value={String(value ?? '')} onInput={(e) => change(e.currentTarget.value === '' ? undefined : e.currentTarget.value)} />
    default:
      return <JsonInput id={id} schema={schema} value={value} marks={marks} change={change} />
  }
}

/** The value that a field has if it is left empty. */
function placeholder(schema: Schema): string | undefined {
  const { default: value } = schema as { default?: unknown }
  return value === undefined || value === null || value === '' ? undefined : typeof value === 'string' ? value : JSON.stringify(value)
}

/** Arrays, objects and values without a type are entered as JSON. */
function JsonInput({ id, schema, value, marks, change }: InputProps) {
  const [problem, setProblem] = useState('')
  return (
    <>
      <textarea id={id} {...marks} aria-invalid={problem || marks['aria-invalid'] ? 'true' : undefined} rows={2} placeholder={placeholder(schema) ?? 'JSON'} defaultValue={value === undefined ? '' : JSON.stringify(value)}
        onInput={(e) => {
          const text = e.currentTarget.value
          let wrong = ''
          try {
            change(text.trim() === '' ? undefined : JSON.parse(text))
          } catch (error) {
            wrong = `This is not JSON yet: ${(error as Error).message}`
          }
          e.currentTarget.setCustomValidity(wrong) // nothing is sent until it is
          setProblem(wrong)
        }} />
      {problem && <p class="bad small problem">{problem}</p>}
    </>
  )
}
