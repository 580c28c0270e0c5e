import { useState } from 'preact/hooks'
import { get, may, urlOf } from '../api'
import { call } from '../mcp'
import { useData } from '../resource'
import { mayChange, type Owned } from '../shares'
import { ago, count, duration, when } from '../format'
import { useHeading } from '../heading'
import { took, type Job } from '../jobs/job'
import { attempt } from '../upstream'
import { removeItem, ScriptList } from './artifacts'
import { Code } from '../parts/code'
import { Hint } from '../parts/hint'
import { notify } from '../parts/notices'
import { SharedMark, ShareButton } from '../parts/share'
import { StartJob } from '../parts/startjob'
import { stateWord } from '../parts/state'
import { Diff } from '../parts/diff'
import { Tree, type TreeNode } from '../parts/tree'
import { Skeleton } from '../parts/skeleton'

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
  return rest ? <OneScript key={rest} hash={rest} /> : <ScriptList />
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
  const title = s ? s.name || `Script ${s.hash.slice(0, 12)}` : error && 'Not here any more'
  useHeading(title, { title: 'Scripts', href: '#/scripts' })
  if (error) return <p class="bad">{error.message}</p>
  if (!s || !title) return <Skeleton />
  const versions = history.data?.versions ?? []
  const current = versions.find((v) => v.current && v.hash === s.hash)
  const choices = new Map<string, string>()
  for (const v of versions) choices.set(v.hash, `version ${v.version}, ${v.hash.slice(0, 12)}`)
  for (const k of family.data ?? []) if (!choices.has(k.hash)) choices.set(k.hash, `${k.name ? `${k.name}, ` : ''}${k.hash.slice(0, 12)}`)
  choices.delete(s.hash)
  return (
    <>
      <div class="row actions top">
        <span class="soft">{s.description}</span>{current && <span class="state good">tool, version {current.version}</span>}<SharedMark kind="artifact" of={whose} />
        <span class="row end">
          <ShareButton kind="artifact" id={s.hash} name={title} of={whose} />
          <a class="button" href={`#/playground/${s.hash}`}>Open in the playground</a>
          {mayChange(whose) && (current ? <Unpublish name={s.name!} /> : <Publish script={s} />)}
          <a class="button" href={urlOf(`/api/v1/library/${s.hash}/content`)} download={`${title.replaceAll(/[^\w.-]+/g, '_')}.${extensions[s.language ?? ''] ?? 'lua'}`}>Download</a>
          {mayChange(whose) && !current && <button type="button" onClick={() => void removeItem(s.hash, title, 'scripts')}>Delete</button>}
        </span>
      </div>
      <div class="columns wide-first">
        <section class="panel" aria-label="Source">
          <div class="row spread">
            <h2>Source</h2>
            <span class="row">
              <label for="against" class="small soft">Compare with</label>
              <select id="against" value={against} onChange={(e) => setAgainst(e.currentTarget.value)}>
                <option value="">none</option>
                {[...choices].map(([h, label]) => <option key={h} value={h}>{label}</option>)}
              </select>
            </span>
          </div>
          {other.data ? <Diff before={other.data.content} after={s.content} /> : <Code text={s.content} language={s.language ?? 'lua'} />}
        </section>
        <div>
          <StartJob hash={s.hash} />
          <Runs name={s.name || s.hash} />
          {versions.length > 0 && (
            <section class="panel" aria-label="Versions">
              <h2>Versions of the tool</h2>
              <ul class="list">
                {versions.map((v) => (
                  <li key={v.version}><a href={`#/scripts/${v.hash}`}>version {v.version}</a> <span class="soft">{when(v.published_at)}</span>{v.current && <span class="good"> current</span>}</li>
                ))}
              </ul>
            </section>
          )}
          {versions.length > 0 && may('admin') && <Callers tool={s.name!} />}
        </div>
      </div>
      {s.ancestors.length + s.children.length > 0 && <section class="panel" aria-label="Lineage"><h2>Lineage</h2><Lineage script={s} family={family.data} /></section>}
      <details class="group small soft"><summary>Details</summary><p class="mono breaks">{s.hash}</p></details>
    </>
  )
}

const extensions: Record<string, string> = { javascript: 'js', typescript: 'ts' }

/** The latest runs of the scripts with a name. */
function Runs({ name }: { name: string }) {
  const { data } = useData((s) => call<{ jobs: Job[]; total: number }>('job_list', { script: name, limit: 30 }, s), [name], ['job.'], (e) => e.type !== 'job.progress')
  if (!data) return null
  const longest = Math.max(...data.jobs.map((j) => (j.started_at ? (j.completed_at ?? j.started_at) - j.started_at : 0)), 0.001)
  return (
    <section class="panel" aria-label="Runs">
      <div class="row spread"><h2>Runs</h2>{data.total > 0 && <a class="small" href={`#/jobs?script=${encodeURIComponent(name)}`}>All {data.total}</a>}</div>
      {data.total === 0 && <Hint>It did not run yet.</Hint>}
      <div class="runs">
        {[...data.jobs].reverse().map((j) => {
          const part = j.started_at ? ((j.completed_at ?? j.started_at) - j.started_at) / longest : 0
          return <a key={j.job_id} href={`#/jobs/${j.job_id}`} class={j.status === 'failed' ? 'bad' : ''} aria-label={`${stateWord(j.status)}, ${when(j.created_at * 1000)}, ${took(j)}`} title={`${stateWord(j.status)}, ${when(j.created_at * 1000)}, ${took(j)}`}><i style={{ height: `${Math.max(4, part * 40)}px` }} /></a>
        })}
      </div>
    </section>
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
    <section class="panel">
      <h2>Callers</h2>
      {data && callers.size === 0 && <Hint>Nobody has called it yet.</Hint>}
      <ul class="list" aria-label="Callers">
        {[...callers].map(([who, calls]) => (
          <li key={who} class="row">{who} <span class="soft">{count(calls.length, 'call')}, last {ago(calls[0].at)}, {duration(calls[0].took_us / 1000)}</span>
            {calls.some((e) => e.error) && <span class="bad">{count(calls.filter((e) => e.error).length, 'error')}</span>}
            {calls[0].trace && <a href={`#/traces/${calls[0].trace}`}>trace</a>}</li>
        ))}
      </ul>
    </section>
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
  if (!family || family.length < 2) return <Skeleton />
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
