import { useState } from 'preact/hooks'
import { get } from '../api'
import { duration, moment, size } from '../format'
import { Hint } from '../parts/hint'
import { Table, type Column } from '../parts/table'
import { Views } from '../parts/views'
import { useData } from '../resource'
import { useFilter } from '../route'

interface Entry {
  node: string
  seq: number
  at: string
  who: string
  name?: string
  client?: string
  trace?: string
  action: string
  subject: string
  decision?: string
  rule?: string
  size: number
  error?: string
  took_us: number
}

const columns: Column<Entry>[] = [
  { name: 'Time', value: (e) => e.at, cell: (e) => <time dateTime={e.at}>{moment(e.at)}</time> },
  { name: 'Who', value: (e) => e.name ?? e.who, cell: (e) => <>{e.name ?? e.who}{e.client && <div class="soft small">{e.client}</div>}</> },
  { name: 'What', value: (e) => `${e.action} ${e.subject}`, cell: (e) => <>{e.action !== 'call' && `${e.action} `}<span class="mono">{e.subject}</span></>, class: 'breaks' },
  { name: 'Outcome', value: (e) => e.error ?? e.decision ?? '', cell: (e) => (e.decision === 'deny' ? <span class="bad">denied{e.rule && ` by ${e.rule}`}</span> : e.error ? <span class="bad">{e.error}</span> : 'ok') },
  { name: 'Size', value: (e) => e.size, cell: (e) => (e.size ? size(e.size) : ''), number: true },
  { name: 'Took', value: (e) => e.took_us, cell: (e) => (e.took_us ? duration(e.took_us / 1000) : ''), number: true },
  { name: 'Trace', cell: (e) => e.trace && <a href={`#/traces/${e.trace}`}>trace</a> },
]

/** Who did what, newest first. */
export function Audit() {
  const [who, setWho] = useFilter('who')
  const [tool, setTool] = useFilter('tool')
  const [decision, setDecision] = useFilter('decision')
  const query = new URLSearchParams({ limit: '10000', own: 'false', ...(who && { who }), ...(tool && { tool }), ...(decision && { decision }) })
  const { data, error, reload } = useData((s) => get<{ entries: Entry[] }>(`/api/v1/audit?${query.toString()}`, s), [who, tool, decision])
  return (
    <>
      <Views at="audit" />
      <div class="row filters">
        <label for="audit-who" class="hidden">Who</label><input id="audit-who" placeholder="Who" value={who} onChange={(e) => setWho(e.currentTarget.value)} />
        <label for="audit-tool" class="hidden">Tool</label><input id="audit-tool" placeholder="Tool, such as git.*" type="search" value={tool} onChange={(e) => setTool(e.currentTarget.value)} />
        <label for="audit-decision" class="hidden">Decision</label>
        <select id="audit-decision" value={decision} onChange={(e) => setDecision(e.currentTarget.value)}><option value="">all decisions</option><option value="allow">allowed</option><option value="deny">denied</option></select>
        <button type="button" onClick={reload}>Reload</button>
        <Verify />
      </div>
      {error && <p class="bad">{error.message}</p>}
      {data?.entries.length === 0 && <Hint>No entries. They are written for each call of a tool and each change by an administrator.</Hint>}
      {data && data.entries.length > 0 && <section class="panel"><Table label="Audit log" rows={data.entries} columns={columns} id={(e) => `${e.node} ${e.seq}`} sort="-Time" /></section>}
    </>
  )
}

/** Checks that no entry was changed, deleted or moved. */
function Verify() {
  const [outcome, setOutcome] = useState<{ good: boolean; text: string }>()
  const verify = async () => {
    try {
      const found = await get<{ sound: boolean; chains: { problems?: unknown[] }[] }>('/api/v1/audit/verify')
      setOutcome({ good: found.sound, text: found.sound ? 'nothing was changed or deleted' : 'entries were changed or deleted; `luanette audit verify` lists them' })
    } catch (e) {
      setOutcome({ good: false, text: (e as Error).message })
    }
  }
  return <><button type="button" onClick={() => void verify()}>Verify</button> <span class={outcome?.good ? 'good' : 'bad'} role="status">{outcome?.text}</span></>
}
