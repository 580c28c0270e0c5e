import { useState } from 'preact/hooks'
import { get } from '../api'
import { ago, clock, size } from '../format'
import { call } from '../mcp'
import { useData } from '../resource'
import { Copy } from '../parts/copy'
import { Hint } from '../parts/hint'
import { Json } from '../parts/json'
import { Preview } from '../parts/content'
import { Tree, type TreeNode } from '../parts/tree'

interface Artifact {
  id: string
  content_hash: string
  mime_type: string
  size_bytes: number
  tags: string[]
  creator: string
  created_at: string
  name?: string
  description?: string
  parent_id?: string
  variation_set_id?: string
  variation_index?: number
  metadata?: unknown
  annotations?: { message: string; vibe?: string; source?: string; created_at?: string }[]
}

interface Found {
  artifacts: Artifact[]
  count: number
  next_cursor?: string
}

/** Searches artifacts by text, tag, type and creator, and shows one of them. */
export function Artifacts({ rest }: { rest: string }) {
  return rest ? <OneArtifact key={rest} id={rest} /> : <AllArtifacts />
}

const types = ['midi', 'audio', 'abc', 'image', 'text', 'data', 'lua', 'soundfont']

function AllArtifacts() {
  const [vibe, setVibe] = useState('')
  const [tags, setTags] = useState<string[]>([])
  const [type, setType] = useState('')
  const [creator, setCreator] = useState('')
  const [cursors, setCursors] = useState<string[]>([]) // of the pages before the current one
  const params = new URLSearchParams([...tags.map((t) => ['tag', t]), ...(type ? [['tag', `type:${type}`]] : [])])
  if (vibe) params.set('vibe', vibe)
  if (creator) params.set('creator', creator)
  params.set('limit', '48')
  if (cursors.length > 0) params.set('cursor', cursors[cursors.length - 1])
  const { data, error } = useData((s) => get<Found>(`/artifacts?${params}`, s), [params.toString()], ['artifact.'])
  const filterBy = (change: () => void) => { setCursors([]); change() }
  return (
    <>
      <div class="row filters">
        <label for="words">Search</label>
        <input id="words" type="search" value={vibe} onInput={(e) => { const v = e.currentTarget.value; filterBy(() => setVibe(v)) }} />
        <label for="type">Type</label>
        <select id="type" value={type} onChange={(e) => { const v = e.currentTarget.value; filterBy(() => setType(v)) }}>
          <option value="">any</option>
          {types.map((t) => <option key={t}>{t}</option>)}
        </select>
        <label for="creator">Creator</label>
        <input id="creator" value={creator} onInput={(e) => { const v = e.currentTarget.value; filterBy(() => setCreator(v)) }} />
        {tags.map((t) => <button key={t} type="button" aria-label={`remove the tag filter ${t}`} onClick={() => filterBy(() => setTags(tags.filter((x) => x !== t)))}>{t} ×</button>)}
      </div>
      {error && <p class="bad">{error.message}</p>}
      {data?.artifacts.length === 0 && <Hint>No artifact matches. Music tools and the script module `cas` store their results here.</Hint>}
      <div class="cards">
        {data?.artifacts.map((a) => (
          <article class="card" key={a.id} aria-label={`artifact ${a.name || a.id}`}>
            <h2><a href={`#/artifacts/${a.id}`}>{a.name || a.id}</a> <span class="soft">{size(a.size_bytes)}</span></h2>
            <p class="soft">{a.mime_type}, by <button type="button" class="tag" onClick={() => filterBy(() => setCreator(a.creator))}>{a.creator}</button>, {ago(a.created_at)}</p>
            {a.description && <p class="prose">{a.description}</p>}
            <div class="row">{a.tags.map((t) => <button key={t} type="button" class="tag" onClick={() => filterBy(() => setTags(tags.includes(t) ? tags : [...tags, t]))}>{t}</button>)}</div>
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

function OneArtifact({ id }: { id: string }) {
  const { data: a, error } = useData((s) => get<Artifact>(`/artifact/${encodeURIComponent(id)}/meta`, s), [id])
  if (error) return <><p><a href="#/artifacts">All artifacts</a></p><p class="bad">{error.message}</p></>
  if (!a) return <p class="soft">…</p>
  const address = `/artifact/${encodeURIComponent(a.id)}`
  const name = a.name || a.id
  return (
    <>
      <p><a href="#/artifacts">All artifacts</a></p>
      <h2>{name}</h2>
      {a.description && <p class="prose">{a.description}</p>}
      <section aria-label="Content"><Preview address={address} type={a.mime_type} bytes={a.size_bytes} name={name} /></section>
      <div class="row actions">
        <a class="button" href={address} download={fileName(name, a.mime_type)}>Download</a>
        <Copy text={a.id}>Copy id</Copy>
        <Copy text={a.content_hash}>Copy hash</Copy>
      </div>
      <dl class="facts">
        <dt>Type</dt><dd>{a.mime_type}, {size(a.size_bytes)}</dd>
        <dt>Creator</dt><dd>{a.creator}</dd>
        <dt>Created</dt><dd>{new Date(a.created_at).toLocaleDateString()} {clock(a.created_at)}</dd>
        <dt>Tags</dt><dd>{a.tags.join(', ')}</dd>
        <dt>Id</dt><dd class="mono">{a.id}</dd>
        <dt>Hash</dt><dd class="mono">{a.content_hash}</dd>
      </dl>
      {a.metadata !== undefined && <><h2>Metadata</h2><Json value={a.metadata} /></>}
      {a.annotations && a.annotations.length > 0 && (
        <><h2>Annotations</h2><ul>{a.annotations.map((n, i) => <li key={i}>{n.message} <span class="soft">{[n.vibe, n.source].filter(Boolean).join(', ')}</span></li>)}</ul></>
      )}
      <h2>Lineage</h2>
      <Lineage artifact={a} />
      {a.variation_set_id && <Variations artifact={a} set={a.variation_set_id} />}
    </>
  )
}

/** Queries the artifact graph, with the tool that scripts and agents use. */
async function query(text: string, variables: Record<string, string>, signal: AbortSignal): Promise<Artifact[]> {
  const found = await call<{ results: Artifact[] }>('call_tool', { name: 'hootenanny.graph_query', arguments: { query: text, variables, limit: 200 } }, signal)
  return found.results ?? []
}

function treeNode(a: Artifact): TreeNode {
  return { id: a.id, label: a.name || a.id, href: `#/artifacts/${a.id}`, parent: a.parent_id }
}

function Lineage({ artifact: a }: { artifact: Artifact }) {
  const { data, error } = useData((s) => query('ancestor = $id or descendant = $id', { id: a.id }, s), [a.id], ['artifact.'])
  if (error) return <p class="bad">{error.message}</p>
  if (!data) return <p class="soft">…</p>
  const others = data.filter((k) => k.id !== a.id)
  if (others.length === 0) return <Hint>This artifact has no ancestors and no descendants.</Hint>
  return <Tree nodes={[treeNode(a), ...others.map(treeNode)]} chosen={a.id} label="lineage" />
}

function Variations({ artifact: a, set }: { artifact: Artifact; set: string }) {
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
            <Preview address={`/artifact/${encodeURIComponent(v.id)}`} type={v.mime_type} bytes={v.size_bytes} name={v.name || v.id} />
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
