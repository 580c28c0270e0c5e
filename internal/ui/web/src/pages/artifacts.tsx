import { useState } from 'preact/hooks'
import { get, post } from '../api'
import { ago, moment, size } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { go, useFilter } from '../route'
import { mayChange, useWhose, type Owned } from '../shares'
import { Copy } from '../parts/copy'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { notify } from '../parts/notices'
import { Preview } from '../parts/content'
import { SharedMark, ShareButton, Whose } from '../parts/share'
import { Tree, type TreeNode } from '../parts/tree'

interface Artifact extends Owned {
  id: string
  hash: string
  kind: string
  mime_type: string
  size_bytes: number
  tags: string[]
  creator?: string
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
  return rest ? <OneArtifact key={rest} id={rest} /> : <Library />
}

const kinds: [string, string][] = [
  ['', 'All'], ['script', 'Scripts'], ['tool', 'Published tools'], ['midi', 'MIDI'], ['abc', 'ABC'], ['audio', 'Audio'], ['image', 'Images'], ['text', 'Text'], ['json', 'JSON'], ['binary', 'Other'],
]
const kindNames: Record<string, string> = { script: 'script', midi: 'MIDI', abc: 'ABC', audio: 'audio', image: 'image', text: 'text', json: 'JSON', binary: 'file' }

const addressOf = (a: Artifact) => (a.kind === 'script' ? `#/scripts/${a.hash}` : `#/artifacts/${a.id}`)

/** Everything that is stored, in one list with its kind. */
export function Library({ only = '' }: { only?: string }) {
  const [find, setFind] = useFilter('find')
  const [kind, setKind] = useFilter('kind', only)
  const [tag, setTag] = useFilter('tag')
  const [creator, setCreator] = useFilter('creator')
  const whose = useWhose()
  const [cursors, setCursors] = useState<string[]>([]) // of the pages before the current one
  const params = new URLSearchParams(Object.entries({ find, kind, tag, creator, cursor: cursors.at(-1) ?? '', limit: '48' }).filter(([, v]) => v))
  const { data, error } = useData((s) => get<Found>(`/api/v1/library?${params}`, s), [params.toString()], ['artifact.', 'script.', 'share.'])
  const filterBy = (change: () => void) => { setCursors([]); change() }
  return (
    <>
      <div class="segments" role="group" aria-label="Kind">{kinds.map(([k, name]) => <button key={k} type="button" aria-pressed={kind === k} onClick={() => filterBy(() => setKind(k))}>{name}</button>)}</div>
      <div class="row filters">
        <label for="words">Search</label>
        <input id="words" type="search" value={find} onInput={(e) => { const v = e.currentTarget.value; filterBy(() => setFind(v)) }} />
        <label for="creator">Creator</label>
        <input id="creator" value={creator} onInput={(e) => { const v = e.currentTarget.value; filterBy(() => setCreator(v)) }} />
        <Whose {...whose} />
        {tag && <button type="button" aria-label={`remove the tag filter ${tag}`} onClick={() => filterBy(() => setTag(''))}>{tag} ×</button>}
        <span class="soft" role="status">{data && `${data.items.length} of ${data.total}`}</span>
      </div>
      {error && <p class="bad">{error.message}</p>}
      {data?.items.length === 0 && <Hint>{find || tag || creator ? 'Nothing matches.' : 'Nothing yet. Save a script in the playground or with `luanette script store FILE`; music tools and the script module `cas` store their results here.'}</Hint>}
      <div class="cards">
        {data?.items.filter(whose.isShown).map((a) => (
          <article class="card item" key={a.id} aria-label={`${a.kind === 'script' ? 'script' : 'artifact'} ${a.name || a.id}`}>
            <h2><a href={addressOf(a)}>{a.name || a.hash.slice(0, 12)}</a> <span class={`kind k-${a.kind}`}>{kindNames[a.kind] ?? a.kind}</span></h2>
            {a.tool && <p class="small"><span class="good">tool</span> <a class="mono" href={`#/tools/${encodeURIComponent(a.tool.name)}`}>{a.tool.name}</a>, version {a.tool.version}</p>}
            <SharedMark kind="artifact" of={a} />
            {a.description && <p class="prose brief">{a.description}</p>}
            <p class="soft small">{size(a.size_bytes)}{a.creator && a.creator !== 'unknown' && <>, by <button type="button" class="tag" onClick={() => filterBy(() => setCreator(a.creator!))}>{a.creator}</button></>}, {ago(a.created_at)}</p>
            <div class="row">{a.tags.map((t) => <button key={t} type="button" class="tag" onClick={() => filterBy(() => setTag(t))}>{t}</button>)}</div>
          </article>
        ))}
      </div>
      <div class="row actions">
        {cursors.length > 0 && <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>Newer</button>}
        {data?.next_cursor && <button type="button" onClick={() => setCursors([...cursors, data.next_cursor!])}>Older</button>}
      </div>
    </>
  )
}

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
  if (error) return <><p><a href="#/artifacts">All artifacts</a></p><p class="bad">{error.message}</p></>
  if (!a) return <p class="soft">…</p>
  const address = `/api/v1/library/${a.id}/content`
  const name = a.name || a.id
  return (
    <>
      <p><a href="#/artifacts">All artifacts</a></p>
      <div class="row title">
        <h2>{name}</h2><span class={`kind k-${a.kind}`}>{kindNames[a.kind] ?? a.kind}</span><SharedMark kind="artifact" of={a} />
        <div class="row">
          <a class="button" href={address} download={fileName(name, a.mime_type)}>Download</a>
          <Copy text={a.id}>Copy id</Copy>
          <Copy text={a.hash}>Copy hash</Copy>
          <ShareButton kind="artifact" id={a.id} name={name} of={a} />
          {mayChange(a) && <button type="button" onClick={() => void removeItem(a.id, name, 'artifacts')}>Delete</button>}
        </div>
      </div>
      {a.description && <p class="prose">{a.description}</p>}
      <section class="panel" aria-label="Content"><Preview address={address} type={a.mime_type} bytes={a.size_bytes} name={name} /></section>
      <section class="panel" aria-label="Details">
        <dl class="facts">
          <dt>Type</dt><dd>{a.mime_type}, {size(a.size_bytes)}</dd>
          {a.creator && <><dt>Creator</dt><dd>{a.creator}</dd></>}
          <dt>Created</dt><dd>{moment(a.created_at)}</dd>
          {a.tags.length > 0 && <><dt>Tags</dt><dd>{a.tags.join(', ')}</dd></>}
          {a.parent_id && <><dt>Made from</dt><dd><a class="mono" href={`#/artifacts/${a.parent_id}`}>{a.parent_id}</a></dd></>}
          <dt>Id</dt><dd class="mono">{a.id}</dd>
          <dt>Hash</dt><dd class="mono">{a.hash}</dd>
        </dl>
      </section>
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
  const found = await call<{ results: Related[] }>('call_tool', { name: 'hootenanny.graph_query', arguments: { query: text, variables, limit: 200 } }, signal)
  return found.results ?? []
}

function treeNode(a: Related): TreeNode {
  return { id: a.id, label: a.name || a.id, href: `#/artifacts/${a.id}`, parent: a.parent_id }
}

function Lineage({ artifact: a }: { artifact: Related }) {
  const { data, error } = useData((s) => query('ancestor = $id or descendant = $id', { id: a.id }, s), [a.id], ['artifact.'])
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <p class="soft">…</p>
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

const extensions: Record<string, string> = { 'audio/midi': 'mid', 'audio/wav': 'wav', 'audio/x-wav': 'wav', 'audio/mpeg': 'mp3', 'text/vnd.abc': 'abc', 'text/plain': 'txt', 'application/json': 'json', 'image/png': 'png', 'image/jpeg': 'jpg', 'text/x-lua': 'lua' }

function fileName(name: string, type: string): string {
  const extension = extensions[type.split(';')[0]]
  const safe = name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_')
  return extension && !safe.endsWith(`.${extension}`) ? `${safe}.${extension}` : safe
}
