// Prompts and resources: what servers offer beside tools, and what they return.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { count, size } from '../format'
import { useHeading } from '../heading'
import { request, type Content, type Schema } from '../mcp'
import { Form, useCheck, type Values } from '../parts/form'
import { Hint } from '../parts/hint'
import { Result } from '../parts/result'
import { Skeleton } from '../parts/skeleton'
import { Table, type Column } from '../parts/table'
import { ToolTabs } from '../parts/tooltabs'
import { useData } from '../resource'
import { useFilter } from '../route'
import { toolEvents } from '../tools'
import { expand, variablesOf } from '../uritemplate'

interface Offer {
  title?: string
  description?: string
}

interface Prompt extends Offer {
  name: string
  arguments?: { name: string; description?: string; required?: boolean }[]
}

interface Resource extends Offer {
  uri: string
  name: string
  mimeType?: string
  size?: number
}

interface Template extends Offer {
  uriTemplate: string
  name: string
  mimeType?: string
}

/** All pages of a list. */
async function listAll<T>(method: string, member: string, signal: AbortSignal): Promise<T[]> {
  const all: T[] = []
  let cursor: string | undefined
  do {
    const page = await request<Record<string, unknown>>(method, cursor ? { cursor } : {}, signal)
    all.push(...((page[member] as T[] | undefined) ?? []))
    cursor = page.nextCursor as string | undefined
  } while (cursor)
  return all
}

async function loadOffers(signal: AbortSignal) {
  const [prompts, resources, templates] = await Promise.all([
    listAll<Prompt>('prompts/list', 'prompts', signal),
    listAll<Resource>('resources/list', 'resources', signal),
    listAll<Template>('resources/templates/list', 'resourceTemplates', signal),
  ])
  return { prompts, resources, templates }
}

const useOffers = () => useData(loadOffers, [], [...toolEvents, 'upstream.lists_refreshed', 'script.'])

/** All of them, those that match a search, or one: prompt/NAME, resource/URI or template/TEMPLATE. */
export function Prompts({ rest }: { rest: string }) {
  return rest ? <One key={rest} kind={rest.split('/', 1)[0]} id={rest.slice(rest.indexOf('/') + 1)} /> : <><ToolTabs at="prompts" /><Lists /></>
}

const linkTo = (kind: string, id: string) => `#/prompts/${kind}/${encodeURIComponent(id)}`

const about = { name: 'Description', cell: (o: Offer) => <span class="soft brief">{o.description}</span>, class: 'about' }

function named(kind: string, id: string, offer: Offer) {
  return <><a class="mono" href={linkTo(kind, id)}>{id}</a>{offer.title && offer.title !== id && <span class="soft small"> {offer.title}</span>}</>
}

const promptColumns: Column<Prompt>[] = [
  { name: 'Prompt', value: (p) => p.name, cell: (p) => named('prompt', p.name, p), class: 'breaks' },
  about,
  { name: 'Arguments', cell: (p) => <span class="mono small breaks">{(p.arguments ?? []).map((a) => a.name + (a.required ? '' : '?')).join(', ')}</span> },
]

const resourceColumns: Column<Resource>[] = [
  { name: 'Resource', value: (r) => r.uri, cell: (r) => named('resource', r.uri, { title: r.title ?? r.name }), class: 'breaks' },
  about,
  { name: 'Type', value: (r) => r.mimeType ?? '', cell: (r) => <span class="small">{r.mimeType}</span> },
  { name: 'Size', value: (r) => r.size ?? 0, cell: (r) => r.size !== undefined && size(r.size), number: true },
]

const templateColumns: Column<Template>[] = [
  { name: 'Template', value: (t) => t.uriTemplate, cell: (t) => named('template', t.uriTemplate, { title: t.title ?? t.name }), class: 'breaks' },
  about,
]

function Lists() {
  const [find, setFind] = useFilter('find')
  const { data, error } = useOffers()
  const matching = <T extends Offer>(list: T[]) => list.filter((one) => JSON.stringify(one).toLowerCase().includes(find.toLowerCase()))
  const prompts = matching(data?.prompts ?? []), resources = matching(data?.resources ?? []), templates = matching(data?.templates ?? [])
  return (
    <section aria-label="Search">
      <div class="row filters">
        <label for="find-offers" class="hidden">Search prompts and resources</label>
        <input id="find-offers" type="search" class="grow" placeholder="Search prompts and resources" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
      </div>
      {error && <p class="bad">{error.message}</p>}
      {!data && !error && <Skeleton />}
      {data && <p class="soft" role="status">{count(prompts.length, 'prompt')}, {count(resources.length, 'resource')}, {count(templates.length, 'template')} as clients see them at /mcp</p>}
      {prompts.length > 0 && <section class="panel"><h2>Prompts</h2><Table label="Prompts" rows={prompts} columns={promptColumns} id={(p) => p.name} /></section>}
      {resources.length > 0 && <section class="panel"><h2>Resources</h2><Table label="Resources" rows={resources} columns={resourceColumns} id={(r) => r.uri} /></section>}
      {templates.length > 0 && <section class="panel"><h2>Templates</h2><Table label="Templates" rows={templates} columns={templateColumns} id={(t) => t.uriTemplate} /></section>}
    </section>
  )
}

const text = (names: string[], required: string[], describe: (name: string) => string | undefined): Schema => ({
  type: 'object', required, properties: Object.fromEntries(names.map((name) => [name, { type: 'string', description: describe(name) }])),
})

function One({ kind, id }: { kind: string; id: string }) {
  const { data, error } = useOffers()
  const offer = kind === 'prompt' ? data?.prompts.find((p) => p.name === id) : kind === 'template' ? data?.templates.find((t) => t.uriTemplate === id) : data?.resources.find((r) => r.uri === id)
  useHeading(offer?.title ?? id, { title: 'Prompts and resources', href: '#/prompts' })
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <Skeleton />
  const given = (offer as Prompt | undefined)?.arguments ?? []
  return (
    <section aria-label="Offer">
      <p class="mono soft breaks">{id}</p>
      {offer?.description && <p class="prose">{offer.description}</p>}
      {!offer && kind !== 'resource' && <Hint>{`There is no ${kind} of this name now. Its server may be disconnected.`}</Hint>}
      {kind === 'prompt' && offer && <Try label="Get" schema={text(given.map((a) => a.name), given.filter((a) => a.required).map((a) => a.name), (name) => given.find((a) => a.name === name)?.description)} send={(values) => messagesOf(id, values)} />}
      {kind === 'template' && offer && <Try label="Read" schema={text(variablesOf(id), [], () => undefined)} send={(values) => contentsOf(expand(id, values))} />}
      {kind === 'resource' && <Try label="Read" schema={{}} send={() => contentsOf(id)} />}
    </section>
  )
}

/** The messages of a prompt. */
async function messagesOf(name: string, values: Values): Promise<ComponentChildren> {
  const { messages } = await request<{ messages: { role: string; content: Content }[] }>('prompts/get', { name, arguments: values })
  return messages.map((m) => <section class="panel" aria-label={`message of ${m.role}`}><h2>{m.role}</h2><Result result={{ content: [m.content] }} /></section>)
}

/** What a resource holds. */
async function contentsOf(uri: string): Promise<ComponentChildren> {
  const { contents } = await request<{ contents: { uri: string; mimeType?: string }[] }>('resources/read', { uri })
  if (contents.length === 0) return <Hint>The resource is empty.</Hint>
  return contents.map((c) => <section class="panel" aria-label={`contents of ${c.uri}`}><h2 class="mono breaks">{c.uri}</h2><Result result={{ content: [{ type: 'resource', resource: c }] }} /></section>)
}

/** Asks the server with the values of a form, and shows what it returns. */
function Try({ label, schema, send }: { label: string; schema: Schema; send: (values: Values) => Promise<ComponentChildren> }) {
  const [values, setValues] = useState<Values>({})
  const [busy, setBusy] = useState(false)
  const [came, setCame] = useState<ComponentChildren>()
  const { problems, valid } = useCheck(schema, values)
  const run = async () => {
    if (!valid()) return
    setBusy(true)
    try {
      setCame(await send(values))
    } catch (e) {
      setCame(<pre class="bad" role="alert">{(e as Error).message}</pre>)
    }
    setBusy(false)
  }
  return (
    <>
      <form class="panel" aria-label="Try it" noValidate onSubmit={(e) => { e.preventDefault(); void run() }}>
        {Object.keys(schema.properties ?? {}).length > 0 && <Form schema={schema} values={values} change={setValues} problems={problems} />}
        <div class="row actions"><button class="main" type="submit" disabled={busy}>{label}</button></div>
      </form>
      <div aria-live="polite">{came}</div>
    </>
  )
}
