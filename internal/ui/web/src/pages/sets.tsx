// Sets of tools: made by ticking, with what their clients pay for them in tokens.
import { useState } from 'preact/hooks'
import { get, home, post } from '../api'
import { count } from '../format'
import { Command } from '../parts/command'
import { useAttempt } from '../parts/fields'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { Skeleton } from '../parts/skeleton'
import { ToolTabs } from '../parts/tooltabs'
import { useData } from '../resource'
import { toolEvents, tokens } from '../tools'

/** A set as the configuration file has it. */
interface ToolSet {
  tools: string[]
  menu?: string
}

interface Part {
  name: string
  tokens: number // in the menu direct
  code?: number // in the menu code, if that lists it
}

interface Shown {
  file: string
  changeable: boolean
  sets: Record<string, ToolSet> | null
  lines: Record<string, number> | null
  costs: { name: string; menu: string; listed: number; tokens: number; tools: unknown[] }[]
  parts: { base: number; tools: Part[] }
}

interface Draft {
  name: string
  set: ToolSet
  old?: ToolSet // what the file has, of a set that is changed
}

const about = 'A set is a part of all tools with an address of its own: who uses it sees nothing else. '
const elsewhere = 'They are made here only by the owner, on the machine of the server; elsewhere by `luanette set add`, or in '

export function Sets() {
  const { data, error, reload } = useData((s) => get<Shown>('/api/v1/setup/sets', s), [], toolEvents)
  const [draft, setDraft] = useState<Draft>()
  return (
    <>
      <ToolTabs at="sets" />
      {error && <p class="bad">{error.message}</p>}
      {!data && !error && <Skeleton />}
      {data && <Hint>{about + (data.changeable ? 'Sets are written to ' : elsewhere) + `\`${data.file}\`.`}</Hint>}
      {data && !draft && <List shown={data} edit={setDraft} reload={reload} />}
      {data?.changeable && !draft && <div class="row actions"><button type="button" class="main" onClick={() => setDraft({ name: '', set: { tools: [], menu: 'direct' } })}>New set</button></div>}
      {data && draft && <Edit shown={data} draft={draft} close={() => { setDraft(undefined); reload() }} reload={reload} />}
    </>
  )
}

const pathOf = (name: string) => `/api/v1/setup/sets/${encodeURIComponent(name)}`

/** Puts a set back as it was; without one it is removed. */
function takeBack(name: string, before: ToolSet | undefined, done: () => void): void {
  const sent = before ? post(pathOf(name), { ...before, replace: true }, 'PUT') : post(pathOf(name), undefined, 'DELETE')
  void sent.then(() => { notify('good', `${name} is as before`); done() }, (e: Error) => notify('bad', e.message))
}

function List({ shown, edit, reload }: { shown: Shown; edit: (d: Draft) => void; reload: () => void }) {
  const sets = Object.entries(shown.sets ?? {}).sort(([a], [b]) => a.localeCompare(b))
  const remove = (name: string, set: ToolSet) => post(pathOf(name), undefined, 'DELETE').then(() => { notify('good', `${name} is removed`, () => takeBack(name, set, reload)); reload() }, (e: Error) => notify('bad', e.message))
  if (sets.length === 0) return <Hint>There are no sets yet.</Hint>
  return (
    <>
      {sets.map(([name, set]) => {
        const costs = shown.costs.find((c) => c.name === name)
        const line = shown.lines?.[name]
        return (
          <section key={name} class="panel" aria-label={`set ${name}`}>
            <h2>{name}</h2>
            <p class="soft">{costs && `${count(costs.tools.length, 'tool')}, menu ${costs.menu}: clients see ${costs.listed} in ${tokens(costs.tokens)}`}{line ? ` · ${shown.file.split(/[\\/]/).pop()!}, line ${line}` : ''}</p>
            <p class="mono small breaks">{set.tools.join(', ')}</p>
            <Command text={`${home()}/mcp/sets/${name}`} />
            <Command text={`luanette install CLIENT --set ${name}`} />
            {shown.changeable && (
              <div class="row actions">
                <button type="button" aria-label={`Edit ${name}`} onClick={() => edit({ name, set, old: set })}>Edit</button>
                <button type="button" aria-label={`Remove ${name}`} onClick={() => void remove(name, set)}>Remove</button>
              </div>
            )}
          </section>
        )
      })}
    </>
  )
}

/** Whether a pattern names a tool; * matches any text. */
const matches = (pattern: string, name: string) => new RegExp(`^${pattern.split('*').map((p) => p.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`, 's').test(name)

const serverOf = (name: string) => (name.includes('.') ? name.slice(0, name.indexOf('.')) : '')

/** The form: every server with its tools. A server as a whole is `server.*`, which has its future tools, too. */
function Edit({ shown, draft, close, reload }: { shown: Shown; draft: Draft; close: () => void; reload: () => void }) {
  const [name, setName] = useState(draft.name)
  const [set, setSet] = useState(draft.set)
  const { busy, failure, attempt } = useAttempt(close, () => () => takeBack(name, draft.old, reload))
  const all = shown.parts.tools
  const inside = all.filter((t) => set.tools.some((p) => matches(p, t.name)))
  const sum = set.menu === 'direct' ? inside.reduce((n, t) => n + t.tokens, 0) : inside.reduce((n, t) => n + (t.code ?? 0), shown.parts.base)
  const tick = (pattern: string, on: boolean) => setSet({ ...set, tools: on ? [...set.tools.filter((p) => !matches(pattern, p)), pattern] : set.tools.filter((p) => p !== pattern) })
  const servers = [...new Set(all.map((t) => serverOf(t.name)))].sort((a, b) => Number(!a) - Number(!b) || a.localeCompare(b))
  const others = set.tools.filter((p) => p.includes('*') && !servers.some((s) => s && p === `${s}.*`))
  const store = async () => {
    await post(pathOf(name), { ...set, replace: !!draft.old }, 'PUT')
    return `the set ${name} is stored`
  }
  return (
    <form class="panel" aria-label="Set" onSubmit={(e) => { e.preventDefault(); attempt(store) }}>
      <label for="set-name">Name, which is part of its address</label>
      <input id="set-name" required pattern="[a-z0-9][a-z0-9_\-]*" maxLength={63} title="lower-case letters, digits, - and _" spellcheck={false} readOnly={!!draft.old} value={name} onInput={(e) => setName(e.currentTarget.value)} />
      <label for="set-menu">What its clients are shown</label>
      <select id="set-menu" value={set.menu ?? ''} onChange={(e) => setSet({ ...set, menu: e.currentTarget.value })}>
        <option value="direct">its tools (direct)</option>
        <option value="code">tools that search and call them (code)</option>
        {draft.set.menu !== 'direct' && draft.set.menu !== 'code' && <option value={draft.set.menu ?? ''}>{draft.set.menu || 'as mcp.menu says'}</option>}
      </select>
      <p role="status"><b>{count(inside.length, 'tool')}</b>{(set.menu === 'direct' || set.menu === 'code') && `, clients see ${tokens(sum)}`}</p>
      {others.map((p) => <label key={p} class="row"><input type="checkbox" checked onChange={() => tick(p, false)} /> <span class="mono">{p}</span></label>)}
      {servers.map((s) => <Server key={s} name={s} tools={all.filter((t) => serverOf(t.name) === s)} patterns={set.tools} tick={tick} />)}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <div class="row actions"><button class="main" type="submit" disabled={busy || set.tools.length === 0}>Store</button><button type="button" onClick={close}>Back</button></div>
    </form>
  )
}

function Server({ name, tools, patterns, tick }: { name: string; tools: Part[]; patterns: string[]; tick: (pattern: string, on: boolean) => void }) {
  const whole = `${name}.*`
  const title = name || 'Luanette and scripts'
  const ticked = tools.filter((t) => patterns.some((p) => matches(p, t.name))).length
  const [open] = useState(ticked > 0 && !patterns.includes(whole))
  return (
    <details class="group" open={open}>
      <summary><b>{title}</b> <span class="soft">{ticked} of {count(tools.length, 'tool')}, {tokens(tools.reduce((n, t) => n + t.tokens, 0))}</span></summary>
      {name && <label class="row"><input type="checkbox" checked={patterns.includes(whole)} onChange={(e) => tick(whole, e.currentTarget.checked)} /> all of {name}, also those it gets later</label>}
      {tools.map((t) => {
        const by = patterns.find((p) => p !== t.name && matches(p, t.name))
        return <label key={t.name} class="row"><input type="checkbox" checked={!!by || patterns.includes(t.name)} disabled={!!by} onChange={(e) => tick(t.name, e.currentTarget.checked)} /> <span class="mono breaks">{t.name}</span> <span class="soft">{tokens(t.tokens)}</span></label>
      })}
    </details>
  )
}
