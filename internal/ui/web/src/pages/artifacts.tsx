import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { get, post, urlOf } from '../api'
import { typeName } from '../contents'
import { count, moment, size, when } from '../format'
import { useHeading } from '../heading'
import { call } from '../mcp'
import { useData } from '../resource'
import { go, useFilter } from '../route'
import { mayChange, useWhose, type Owned } from '../shares'
import { Copy } from '../parts/copy'
import { Glimpse } from '../parts/glimpse'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { notify } from '../parts/notices'
import { Preview } from '../parts/content'
import { Schedules } from '../parts/schedules'
import { SharedMark, ShareButton, Whose } from '../parts/share'
import { Tree, type TreeNode } from '../parts/tree'
import { Skeleton } from '../parts/skeleton'

interface Artifact extends Owned {
  id: string
  hash: string
  kind: string
  mime_type: string
  size_bytes: number
  tags: string[]
  creator?: string
  job?: string
  created_at: string
  name?: string
  description?: string
  parent_id?: string
  tool?: { name: string; version: number }
  annotations?: { message: string; vibe?: string; source?: string }[]
}

/** What the music tools know of an artifact beside that. */
interface Extra {
  variation_set_id?: string
  metadata?: unknown
}

interface Related {
  id: string
  mime_type: string
  size_bytes: number
  name?: string
  parent_id?: string
  variation_index?: number
}

interface Found {
  items: Artifact[]
  total: number
  next_cursor?: string
}

export function Artifacts({ rest }: { rest: string }) {
  if (rest === 'schedules') return <><Tabs at="schedules" /><Schedules whole /></>
  return rest ? <OneArtifact key={rest} id={rest} /> : <Results />
}

/** The three lists of the library. */
function Tabs({ at }: { at: 'scripts' | 'artifacts' | 'schedules' }) {
  return (
    <nav class="tabs" aria-label="Library">
      {([['scripts', 'Scripts', '#/scripts'], ['artifacts', 'Results', '#/library'], ['schedules', 'Schedules', '#/library/schedules']] as const).map(([id, name, href]) => (
        <a key={id} href={href} aria-current={at === id ? 'page' : undefined}>{name}</a>
      ))}
    </nav>
  )
}

const kinds: [string, string][] = [['', 'All'], ['text', 'Text'], ['json', 'Data'], ['image', 'Images'], ['audio', 'Audio'], ['midi', 'MIDI'], ['abc', 'ABC'], ['binary', 'Other']]

const nameOf = (a: Artifact) => a.name || (a.creator && a.creator !== 'unknown' ? `${typeName(a.mime_type)} of ${a.creator}` : `${typeName(a.mime_type)} without a name`)

/** The filters of a list of the library, in the address. */
function useFilters(missing: string) {
  const [find, setFind] = useFilter('find')
  const [kind, setKind] = useFilter('kind')
  const [tag, setTag] = useFilter('tag')
  const [creator, setCreator] = useFilter('creator')
  const [cursors, setCursors] = useState<string[]>([]) // of the pages before the current one
  const params = new URLSearchParams(Object.entries({ find, kind: kind || missing, tag, creator, cursor: cursors.at(-1) ?? '', limit: '48' }).filter(([, v]) => v))
  const found = useData((s) => get<Found>(`/api/v1/library?${params}`, s), [params.toString()], ['artifact.', 'script.', 'share.', 'job.finished'])
  const change = (set: (v: string) => void) => (v: string) => {
    setCursors([])
    set(v)
  }
  return { find, kind, tag, creator, setFind: change(setFind), setKind: change(setKind), setTag: change(setTag), setCreator: change(setCreator), cursors, setCursors, ...found }
}

type Filters = ReturnType<typeof useFilters>

function Filtered({ of: f, children }: { of: Filters; children: ComponentChildren }) {
  const narrowed = f.find || f.tag || f.creator || f.kind
  return (
    <>
      {f.error && <p class="bad">{f.error.message}</p>}
      {f.data?.items.length === 0 && narrowed && <p class="soft">Nothing matches. <button type="button" class="quiet" onClick={() => go(location.hash.replace(/^#\/|\?.*$/g, ''))}>Clear filters</button></p>}
      {children}
      {(f.cursors.length > 0 || f.data?.next_cursor) && (
        <div class="row actions">
          {f.cursors.length > 0 && <button type="button" onClick={() => f.setCursors(f.cursors.slice(0, -1))}>Newer</button>}
          {f.data?.next_cursor && <button type="button" onClick={() => f.setCursors([...f.cursors, f.data!.next_cursor!])}>Older</button>}
        </div>
      )}
    </>
  )
}

/** What scripts, tools and people stored. */
function Results() {
  const f = useFilters('result')
  const whose = useWhose()
  const items = f.data?.items.filter(whose.isShown) ?? []
  return (
    <>
      <Tabs at="artifacts" />
      <div class="row filters">
        <input type="search" aria-label="Search" placeholder="Find a result" value={f.find} onInput={(e) => f.setFind(e.currentTarget.value)} />
        <div class="segments" role="group" aria-label="Kind">{kinds.map(([k, name]) => <button key={k} type="button" aria-pressed={f.kind === k} onClick={() => f.setKind(k)}>{name}</button>)}</div>
        <input class="creator" aria-label="Creator" placeholder="Made by" value={f.creator} onInput={(e) => f.setCreator(e.currentTarget.value)} />
        <Whose {...whose} />
        {f.tag && <button type="button" class="tag" aria-label={`remove the tag filter ${f.tag}`} onClick={() => f.setTag('')}>{f.tag} ×</button>}
        <span class="soft small" role="status">{f.data && count(f.data.total, 'result')}</span>
      </div>
      <Filtered of={f}>
        {f.data?.items.length === 0 && !f.find && !f.kind && !f.tag && !f.creator && <Hint>What scripts store appears here: `cas.store(text, nil, "report.md")`. So does what music tools make and what is uploaded.</Hint>}
        <div class="cards results">
          {items.map((a) => (
            <article class="card result" key={a.id} aria-label={`${a.kind === 'script' ? 'script' : 'artifact'} ${nameOf(a)}`}>
              <Glimpse address={`/api/v1/library/${a.id}/content`} type={a.mime_type} bytes={a.size_bytes} name={a.name ?? ''} />
              <h2><a href={addressOf(a)}>{nameOf(a)}</a></h2>
              <p class="soft small">{a.creator && a.creator !== 'unknown' && <><button type="button" class="quiet" onClick={() => f.setCreator(a.creator!)}>{a.creator}</button> · </>}{a.job && <><a class="plain" href={`#/jobs/${a.job}`}>run</a> · </>}{when(a.created_at)}</p>
              <p class="row small soft"><span class="kind">{typeName(a.mime_type)}</span>{a.tool ? `tool ${a.tool.name}, version ${a.tool.version}` : size(a.size_bytes)}<SharedMark kind="artifact" of={a} />{shown(a).map((t) => <button key={t} type="button" class="tag" onClick={() => f.setTag(t)}>{t}</button>)}</p>
            </article>
          ))}
        </div>
      </Filtered>
    </>
  )
}

/** The scripts by their names; those without one are folded. */
export function ScriptList() {
  const f = useFilters('script')
  const whose = useWhose()
  const items = f.data?.items.filter(whose.isShown) ?? []
  const named = items.filter((a) => a.name), others = items.filter((a) => !a.name)
  return (
    <>
      <Tabs at="scripts" />
      <div class="row filters">
        <input type="search" aria-label="Search" placeholder="Find a script" value={f.find} onInput={(e) => f.setFind(e.currentTarget.value)} />
        <div class="segments" role="group" aria-label="Kind">{[['', 'All'], ['tool', 'Published']].map(([k, name]) => <button key={k} type="button" aria-pressed={f.kind === k} onClick={() => f.setKind(k)}>{name}</button>)}</div>
        <Whose {...whose} />
        {f.tag && <button type="button" class="tag" aria-label={`remove the tag filter ${f.tag}`} onClick={() => f.setTag('')}>{f.tag} ×</button>}
        <span class="soft small" role="status">{f.data && count(f.data.total, 'script')}</span>
        <a class="button main end" href="#/playground">New script</a>
      </div>
      <Filtered of={f}>
        {f.data?.items.length === 0 && !f.find && !f.kind && !f.tag && <Hint>Scripts that are saved appear here. Save one in the playground, or with `luanette script store FILE`.</Hint>}
        {named.length > 0 && <ScriptTable items={named} setTag={f.setTag} label="Scripts" />}
        {others.length > 0 && <details class="group" open={named.length === 0}><summary>{count(others.length, 'script')} without a name</summary><ScriptTable items={others} setTag={f.setTag} label="Scripts without a name" /></details>}
      </Filtered>
    </>
  )
}

function ScriptTable({ items, setTag, label }: { items: Artifact[]; setTag: (v: string) => void; label: string }) {
  return (
    <table class="stack rowed" aria-label={label}>
      <thead><tr><th>Name</th><th>Tool</th><th>Tags</th><th>By</th><th class="num">Changed</th></tr></thead>
      <tbody>
        {items.map((a) => (
          <tr key={a.id}>
            <td class="main"><a class="name" href={addressOf(a)}>{a.name || a.hash.slice(0, 12)}</a> <SharedMark kind="artifact" of={a} />{a.description && <span class="second oneline">{a.description}</span>}</td>
            <td>{a.tool && <a href={`#/tools/${encodeURIComponent(a.tool.name)}`}>version {a.tool.version}</a>}</td>
            <td><span class="row">{shown(a).map((t) => <button key={t} type="button" class="tag" onClick={() => setTag(t)}>{t}</button>)}</span></td>
            <td class="soft">{a.creator !== 'unknown' && a.creator}</td>
            <td class="num">{when(a.created_at)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The tags that people gave: the others say what the type and the tool say, too. */
const shown = (a: Artifact) => a.tags.filter((t) => !/^(type|tool):/.test(t))

const addressOf = (a: Artifact) => (a.kind === 'script' ? `#/scripts/${a.hash}` : `#/artifacts/${a.id}`)

/** Deletes an artifact or a script, with a notice that brings it back. */
export async function removeItem(id: string, name: string, list: string): Promise<void> {
  try {
    const gone = await post<Artifact>(`/api/v1/library/${encodeURIComponent(id)}`, undefined, 'DELETE')
    notify('good', `${name} was deleted`, () => void post(`/api/v1/library/${gone.hash}/restore`, {}).then(() => notify('good', `${name} is back`), (e: Error) => notify('bad', e.message)))
    go(list)
  } catch (e) {
    notify('bad', (e as Error).message)
  }
}

function OneArtifact({ id }: { id: string }) {
  const { data: a, error } = useData((s) => get<Artifact>(`/api/v1/library/${encodeURIComponent(id)}`, s), [id])
  const extra = useData((s) => get<Extra>(`/artifact/${encodeURIComponent(id)}/meta`, s).catch(() => undefined), [id]) // only with the music tools
  useHeading(a ? nameOf(a) : error && 'Not here any more', { title: 'Results', href: '#/library' })
  if (error) return <p class="bad">{error.message}</p>
  if (!a) return <Skeleton />
  const address = `/api/v1/library/${a.id}/content`
  const name = nameOf(a)
  return (
    <>
      <div class="row actions top">
        <span class="kind">{typeName(a.mime_type)}</span><SharedMark kind="artifact" of={a} />
        <span class="soft small">{size(a.size_bytes)}{a.creator && a.creator !== 'unknown' && `, by ${a.creator}`}{a.job && <>, stored by <a href={`#/jobs/${a.job}`}>a run</a></>}, {moment(a.created_at)}</span>
        <span class="row end">
          <a class="button" href={urlOf(address)} download={fileName(name, a.mime_type)}>Download</a>
          <Copy text={`cas.read("${a.hash}")`}>Copy for a script</Copy>
          <ShareButton kind="artifact" id={a.id} name={name} of={a} />
          {mayChange(a) && <button type="button" onClick={() => void removeItem(a.id, name, 'library')}>Delete</button>}
        </span>
      </div>
      {a.description && <p class="prose">{a.description}</p>}
      <section class="panel" aria-label="Content"><Preview address={address} type={a.mime_type} bytes={a.size_bytes} name={name} /></section>
      <details class="panel group" aria-label="Details">
        <summary>Details</summary>
        <dl class="facts">
          <dt>Type</dt><dd>{a.mime_type}</dd>
          {a.tags.length > 0 && <><dt>Tags</dt><dd>{a.tags.join(', ')}</dd></>}
          {a.parent_id && <><dt>Made from</dt><dd><a class="mono" href={`#/artifacts/${a.parent_id}`}>{a.parent_id}</a></dd></>}
          <dt>Id</dt><dd class="mono">{a.id} <Copy text={a.id}>Copy id</Copy></dd>
          <dt>Hash</dt><dd class="mono">{a.hash} <Copy text={a.hash}>Copy hash</Copy></dd>
        </dl>
      </details>
      {extra.data?.metadata !== undefined && <><h2>Metadata</h2><Json value={extra.data.metadata} /></>}
      {a.annotations && a.annotations.length > 0 && (
        <><h2>Annotations</h2><ul>{a.annotations.map((n, i) => <li key={i}>{n.message} <span class="soft">{[n.vibe, n.source].filter(Boolean).join(', ')}</span></li>)}</ul></>
      )}
      {extra.data && <><h2>Lineage</h2><Lineage artifact={a} /></>}
      {extra.data?.variation_set_id && <Variations artifact={a} set={extra.data.variation_set_id} />}
    </>
  )
}

/** Queries the artifact graph, with the tool that scripts and agents use. */
async function query(text: string, variables: Record<string, string>, signal: AbortSignal): Promise<Related[]> {
  const found = await call<{ results: Related[] }>('call_tool_read', { name: 'hootenanny.graph_query', arguments: { query: text, variables, limit: 200 } }, signal)
  return found.results ?? []
}

function treeNode(a: Related): TreeNode {
  return { id: a.id, label: a.name || a.id, href: `#/artifacts/${a.id}`, parent: a.parent_id }
}

function Lineage({ artifact: a }: { artifact: Related }) {
  const { data, error } = useData((s) => query('ancestor = $id or descendant = $id', { id: a.id }, s), [a.id], ['artifact.'])
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <Skeleton />
  const others = data.filter((k) => k.id !== a.id)
  if (others.length === 0) return <Hint>This artifact has no ancestors and no descendants.</Hint>
  return <Tree nodes={[treeNode(a), ...others.map(treeNode)]} chosen={a.id} label="lineage" />
}

function Variations({ artifact: a, set }: { artifact: Related; set: string }) {
  const { data, error } = useData((s) => query('set = $set', { set }, s), [set], ['artifact.'])
  const list = [...(data ?? [])].sort((x, y) => (x.variation_index ?? 0) - (y.variation_index ?? 0))
  return (
    <>
      <h2>Variations in {set}</h2>
      {error && <p class="bad">{error.message}</p>}
      <ol class="variations" start={list[0]?.variation_index ?? 0}>
        {list.map((v) => (
          <li key={v.id} value={v.variation_index ?? 0}>
            {v.id === a.id ? <strong>{v.name || v.id}</strong> : <a href={`#/artifacts/${v.id}`}>{v.name || v.id}</a>}
            <Preview address={`/api/v1/library/${encodeURIComponent(v.id)}/content`} type={v.mime_type} bytes={v.size_bytes} name={v.name || v.id} />
          </li>
        ))}
      </ol>
    </>
  )
}

const extensions: Record<string, string> = { 'audio/midi': 'mid', 'audio/wav': 'wav', 'audio/x-wav': 'wav', 'audio/mpeg': 'mp3', 'text/vnd.abc': 'abc', 'text/plain': 'txt', 'application/json': 'json', 'image/png': 'png', 'image/jpeg': 'jpg', 'text/x-lua': 'lua', 'text/markdown': 'md', 'text/csv': 'csv', 'image/svg+xml': 'svg' }

function fileName(name: string, type: string): string {
  const extension = extensions[type.split(';')[0]]
  const safe = name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_')
  return extension && !safe.endsWith(`.${extension}`) ? `${safe}.${extension}` : safe
}
