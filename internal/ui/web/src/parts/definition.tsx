// The definition of a tool as people read it, with what changed since another one marked.
import type { Schema } from '../mcp'
import { typeText, visible } from '../schema'
import { Words } from './diff'
import { Hint } from './hint'
import { Json } from './json'

export interface ToolDefinition {
  title?: string
  description?: string
  inputSchema?: Schema
  outputSchema?: Schema
  annotations?: Record<string, unknown>
}

/** `before` is the definition that was approved; without it nothing is marked. */
export function Definition({ before, after }: { before?: ToolDefinition; after: ToolDefinition }) {
  const old = before ?? after
  return (
    <div class="definition">
      {(old.title ?? after.title) && <p><b><Text before={old.title} after={after.title} /></b></p>}
      <p class="prose"><Text before={old.description} after={after.description} /></p>
      {(old.inputSchema ?? after.inputSchema) && <Arguments before={old.inputSchema} after={after.inputSchema} />}
      <Annotations before={old.annotations} after={after.annotations} />
      {(old.outputSchema ?? after.outputSchema) && <details open={!same(old.outputSchema, after.outputSchema)}><summary>Result</summary><Arguments before={old.outputSchema} after={after.outputSchema} label="Fields of the result" /></details>}
    </div>
  )
}

function Text({ before = '', after = '' }: { before?: string; after?: string }) {
  return <Words before={visible(before)} after={visible(after)} />
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** The properties of a schema, those that were removed too. */
function Arguments({ before, after, label = 'Arguments' }: { before?: Schema; after?: Schema; label?: string }) {
  const old = before?.properties ?? {}, now = after?.properties ?? {}
  const names = [...new Set([...Object.keys(now), ...Object.keys(old)])]
  if (names.length === 0) return <Hint>{label === 'Arguments' ? 'No arguments.' : 'Any object.'}</Hint>
  return (
    <div class="scroll">
      <table class="stack" aria-label={label}>
        <thead><tr><th><span class="hidden">Change</span></th><th>{label === 'Arguments' ? 'Argument' : 'Field'}</th><th>Type</th><th>Description</th></tr></thead>
        <tbody>{names.map((n) => <Argument key={n} name={n} before={old[n]} after={now[n]} was={before?.required?.includes(n) ?? false} is={after?.required?.includes(n) ?? false} />)}</tbody>
      </table>
    </div>
  )
}

function Argument({ name, before, after, was, is }: { name: string; before?: Schema; after?: Schema; was: boolean; is: boolean }) {
  const kind = !before ? 'added' : !after ? 'removed' : same(before, after) && was === is ? '' : 'changed'
  const type = (s: Schema | undefined, required: boolean) => (s ? `${visible(typeText(s))}${required ? ', required' : ''}` : '')
  const described = (s: Schema | undefined) => visible(s?.description ?? '')
  const shown = type(before, was) !== type(after, is) || described(before) !== described(after)
  return (
    <tr class={kind}>
      <td>{kind && <span class={`state ${{ added: 'good', removed: 'bad', changed: 'warn' }[kind]}`}>{kind}</span>}</td>
      <td><code>{visible(name)}</code></td>
      <td class="mono"><Words before={type(before, was)} after={type(after, is)} /></td>
      <td class="prose">
        <Words before={described(before)} after={described(after)} />
        {kind === 'changed' && !shown && <><Json name="before" value={before} depth={1} /><Json name="after" value={after} depth={1} /></>}
      </td>
    </tr>
  )
}

/** The hints of a tool: whether it only reads, destroys or reaches other systems. */
function Annotations({ before = {}, after = {} }: { before?: Record<string, unknown>; after?: Record<string, unknown> }) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((n) => n !== 'title')
  if (names.length === 0) return null
  const text = (v: unknown) => (v === undefined ? '' : JSON.stringify(v))
  return <p class="small">{names.map((n) => <span key={n} class="tag at">{n}: <Words before={text(before[n])} after={text(after[n])} /></span>)}</p>
}
