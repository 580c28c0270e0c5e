import { useState } from 'preact/hooks'
import { get, may } from '../api'
import { call } from '../mcp'
import { useData } from '../resource'
import { mayChange, type Owned } from '../shares'
import { ago, count, duration, moment } from '../format'
import { attempt } from '../upstream'
import { Library, removeItem } from './artifacts'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { SharedMark, ShareButton } from '../parts/share'
import { StartJob } from '../parts/startjob'
import { Diff } from '../parts/diff'
import { Tree, type TreeNode } from '../parts/tree'

interface Script {
  hash: string
  name?: string
  description?: string
  tags: string[]
  creator?: string
  parent?: string
  created_at: string
}

interface ScriptDetail extends Script {
  content: string
  language?: string
  ancestors: string[]
  children: string[]
}

export function Scripts({ rest }: { rest: string }) {
  return rest ? <OneScript key={rest} hash={rest} /> : <Library only="script" />
}

interface Version {
  version: number
  hash: string
  published_at: string
  current?: boolean
}

function OneScript({ hash }: { hash: string }) {
  const { data: s, error } = useData((signal) => call<ScriptDetail>('script_get', { script_hash: hash }, signal), [hash], ['script.', 'artifact.'])
  // A script that was never published has no history; that is not an error.
  const history = useData((signal) => (s?.name ? call<{ versions: Version[] }>('script_history', { name: s.name }, signal).catch(() => undefined) : Promise.resolve(undefined)), [s?.name], ['script.'])
  const [against, setAgainst] = useState('')
  const other = useData((signal) => (against ? call<ScriptDetail>('script_get', { script_hash: against }, signal) : Promise.resolve(undefined)), [against])
  const family = useData((signal) => (s ? relatives(s, signal) : Promise.resolve([])), [s?.hash], ['script.', 'artifact.'])
  const whose = useData((signal) => get<Owned>(`/api/v1/library/${hash}`, signal), [hash], ['share.']).data ?? {}
  if (error) return <><p><a href="#/scripts">All scripts</a></p><p class="bad">{error.message}</p></>
  if (!s) return <p class="soft">…</p>
  const versions = history.data?.versions ?? []
  const current = versions.find((v) => v.current && v.hash === s.hash)
  const choices = new Map<string, string>()
  for (const v of versions) choices.set(v.hash, `version ${v.version}, ${v.hash.slice(0, 12)}`)
  for (const k of family.data ?? []) if (!choices.has(k.hash)) choices.set(k.hash, `${k.name ? `${k.name}, ` : ''}${k.hash.slice(0, 12)}`)
  choices.delete(s.hash)
  return (
    <>
      <p><a href="#/scripts">All scripts</a></p>
      <div class="row title">
        <h2>{s.name || s.hash.slice(0, 12)}</h2>{current && <span class="state good">tool, version {current.version}</span>}<SharedMark kind="artifact" of={whose} />
        <div class="row">
          <ShareButton kind="artifact" id={s.hash} name={s.name || s.hash.slice(0, 12)} of={whose} />
          <a class="button" href={`#/playground/${s.hash}`}>Open in the playground</a>
          {mayChange(whose) && (current ? <Unpublish name={s.name!} /> : <Publish script={s} />)}
          <a class="button" href={`/api/v1/library/${s.hash}/content`} download={`${(s.name || s.hash.slice(0, 12)).replaceAll(/[^\w.-]+/g, '_')}.${s.language === 'javascript' ? 'js' : s.language === 'typescript' ? 'ts' : 'lua'}`}>Download</a>
          {mayChange(whose) && !current && <button type="button" onClick={() => void removeItem(s.hash, s.name || s.hash.slice(0, 12), 'scripts')}>Delete</button>}
        </div>
      </div>
      <p class="prose">{s.description}</p>
      <p class="mono soft breaks">{s.hash}</p>
      <StartJob hash={s.hash} />
      <h2>Lineage</h2>
      <Lineage script={s} family={family.data} />
      {versions.length > 0 && (
        <>
          <h2>Versions of the tool</h2>
          <ul class="list">
            {versions.map((v) => (
              <li key={v.version}>
                version {v.version}: <a class="mono" href={`#/scripts/${v.hash}`}>{v.hash.slice(0, 12)}</a> <span class="soft">{moment(v.published_at)}</span>{v.current && <span class="good"> current</span>}
              </li>
            ))}
          </ul>
        </>
      )}
      {versions.length > 0 && may('admin') && <Callers tool={s.name!} />}
      <h2>Source</h2>
      <div class="row">
        <label for="against">Compare with</label>
        <select id="against" value={against} onChange={(e) => setAgainst(e.currentTarget.value)}>
          <option value="">none</option>
          {[...choices].map(([h, label]) => <option key={h} value={h}>{label}</option>)}
        </select>
      </div>
      {other.data ? <Diff before={other.data.content} after={s.content} /> : <pre>{s.content}</pre>}
    </>
  )
}

interface AuditEntry {
  at: string
  who: string
  name?: string
  client?: string
  error?: string
  took_us: number
  trace?: string
}

/** Who called the tool lately, as the audit log has it. */
function Callers({ tool }: { tool: string }) {
  const { data } = useData((s) => get<{ entries: AuditEntry[] }>(`/api/v1/audit?tool=${encodeURIComponent(tool)}&limit=200`, s).catch(() => undefined), [tool], ['tool.', 'job.'])
  const callers = new Map<string, AuditEntry[]>()
  for (const e of data?.entries ?? []) {
    const who = [e.name ?? e.who, e.client].filter(Boolean).join(', ')
    callers.set(who, [...(callers.get(who) ?? []), e])
  }
  return (
    <>
      <h2>Callers</h2>
      {data && callers.size === 0 && <Hint>Nobody has called it yet.</Hint>}
      <ul class="list" aria-label="Callers">
        {[...callers].map(([who, calls]) => (
          <li key={who} class="row">{who} <span class="soft">{count(calls.length, 'call')}, last {ago(calls[0].at)}, {duration(calls[0].took_us / 1000)}</span>
            {calls.some((e) => e.error) && <span class="bad">{count(calls.filter((e) => e.error).length, 'error')}</span>}
            {calls[0].trace && <a href={`#/traces/${calls[0].trace}`}>trace</a>}</li>
        ))}
      </ul>
    </>
  )
}

function Unpublish({ name }: { name: string }) {
  return (
    <button type="button" onClick={() => void attempt(() => call('script_unpublish', { name }), `${name} is no tool any more`)}>Unpublish</button>
  )
}

/** The number of ancestors and children whose own children are loaded. */
const maxRelatives = 12

/** The relatives of a script: its ancestors, their children, its children and their children. */
async function relatives(s: ScriptDetail, signal: AbortSignal): Promise<Script[]> {
  const known = new Map<string, Script>([[s.hash, s]])
  const childrenOf = async (hashes: string[]) => {
    const found = await Promise.all(hashes.map((parent) => call<{ scripts: Script[] }>('script_search', { parent, limit: 20 }, signal)))
    for (const { scripts } of found) for (const one of scripts) if (!known.has(one.hash)) known.set(one.hash, one)
  }
  const ancestors = s.ancestors.slice(0, maxRelatives)
  if (ancestors.length > 0) { // the oldest is not a child of any loaded script
    const oldest = await call<ScriptDetail>('script_get', { script_hash: ancestors[ancestors.length - 1] }, signal)
    known.set(oldest.hash, oldest)
  }
  await childrenOf([...ancestors, s.hash])
  await childrenOf(s.children.slice(0, maxRelatives))
  return [...known.values()]
}

/** The graph of a script's ancestors and descendants. */
function Lineage({ script: s, family }: { script: ScriptDetail; family?: Script[] }) {
  if (s.ancestors.length + s.children.length === 0) return <Hint>This script has no ancestors and no descendants.</Hint>
  if (!family || family.length < 2) return <p class="soft">…</p>
  const names = family.map((k) => k.name)
  const label = (k: Script) => (!k.name ? k.hash.slice(0, 12) : names.indexOf(k.name) === names.lastIndexOf(k.name) ? k.name : `${k.name} ${k.hash.slice(0, 6)}`)
  const list = family.map((k): TreeNode => ({ id: k.hash, label: label(k), href: `#/scripts/${k.hash}`, parent: k.parent, about: k.description }))
  return <Tree nodes={list} chosen={s.hash} label="lineage" />
}

export function Publish({ script }: { script: { hash: string; name?: string } }) {
  return (
    <button type="button" onClick={async () => {
      try {
        const tool = await call<{ name: string; version: number }>('script_publish', { script_hash: script.hash })
        notify('good', `${tool.name} is a tool now, version ${tool.version}`)
      } catch (e) {
        notify('bad', (e as Error).message)
      }
    }}>Publish as a tool</button>
  )
}
