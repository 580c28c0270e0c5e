import { useState } from 'preact/hooks'
import { may } from '../api'
import { count } from '../format'
import { call } from '../mcp'
import { Effect, effectOf } from '../parts/effect'
import { Hint } from '../parts/hint'
import { OneTool } from '../parts/tool'
import { Table, type Column } from '../parts/table'
import { ToolTabs } from '../parts/tooltabs'
import { useData } from '../resource'
import { useFilter } from '../route'
import { changeTool, loadTools, tokens, toolEvents, type ListedTool, type ToolGroup } from '../tools'

/** All tools by server, those that match a search, or one of them. */
export function Tools({ rest }: { rest: string }) {
  return rest ? <OneTool key={rest} name={rest} /> : <><ToolTabs at="tools" /><AllTools /></>
}

function AllTools() {
  const [find, setFind] = useFilter('find')
  const [server, setServer] = useFilter('server')
  const groups = useData((s) => loadTools(s), [], toolEvents)
  const list = groups.data
  return (
    <section aria-label="Search">
      <div class="row filters">
        <label for="search" class="hidden">Search by name or description</label>
        <input id="search" type="search" class="grow" placeholder="What should the tool do?" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <label for="tool-server" class="hidden">Server</label>
        <select id="tool-server" value={server} onChange={(e) => setServer(e.currentTarget.value)}><option value="">all servers</option>{list?.servers.map((g) => <option key={g.server}>{g.server}</option>)}</select>
      </div>
      {groups.error && <p class="bad">{groups.error.message}</p>}
      {find ? <Matches find={find} server={server} /> : list && <Groups groups={list.servers} server={server} total={list.total} sum={list.tokens} reload={groups.reload} />}
    </section>
  )
}

/** Up to this many tools in all servers, every group is open. */
const mostOpen = 60

function Groups({ groups, server, total, sum, reload }: { groups: ToolGroup[]; server: string; total: number; sum: number; reload: () => void }) {
  const shown = groups.filter((g) => !server || g.server === server).sort((a, b) => Number(b.tools > 0) - Number(a.tools > 0))
  const others = groups.filter((g) => g.server !== 'luanette')
  return (
    <>
      <p class="soft" role="status">{count(total, 'tool')} of {count(groups.length, 'server')}, {tokens(sum)} if all were listed</p>
      {others.length === 0 && <Hint>Only the tools of Luanette itself. Connect a server on the Servers page.</Hint>}
      {shown.map((g) => <Group key={g.server} group={g} open={g.server === server || (g.server !== 'luanette' && g.tools > 0 && others.reduce((n, o) => n + o.tools, 0) <= mostOpen)} reload={reload} />)}
    </>
  )
}

function Group({ group: g, open, reload }: { group: ToolGroup; open: boolean; reload: () => void }) {
  const [shown, setShown] = useState(open)
  return (
    <details class="panel group" open={open} onToggle={(e) => setShown(e.currentTarget.open)} aria-label={`tools of ${g.server}`}>
      <summary>
        <b>{g.server}</b> <span class="soft">{count(g.tools, 'tool')}, {tokens(g.tokens)}{g.disabled && g.disabled.length > 0 && `, ${g.disabled.length} disabled`}</span>
        {g.stale && <span class="tag at warn">disconnected</span>}
      </summary>
      {g.server !== 'luanette' && <p><a href={`#/servers/${encodeURIComponent(g.server)}`}>Page of the server</a></p>}
      {shown && <ToolsOf server={g.server} reload={reload} />}
    </details>
  )
}

const columns: Column<ListedTool>[] = [
  { name: 'Tool', value: (t) => t.name, cell: (t) => <ToolLink tool={t} />, class: 'breaks' },
  { name: 'Description', cell: (t) => <span class="soft brief">{t.description}</span>, class: 'about' },
  { name: 'Effect', value: effectOf, cell: (t) => <Effect tool={t} /> },
  { name: 'Tokens', value: (t) => t.tokens, cell: (t) => t.tokens, number: true },
]

/** The tools of one server. */
export function ToolsOf({ server, reload, sum = false }: { server: string; reload?: () => void; sum?: boolean }) {
  const { data, error, reload: again } = useData((s) => loadTools(s, server), [server], toolEvents)
  const disabled = data?.servers[0]?.disabled ?? []
  const enable = (tool: string) => changeTool(`${server}.${tool}`, { disabled: false }, { disabled: true }, `${server}.${tool} enabled`, () => { again(); reload?.() })
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      {sum && data && data.total > 0 && <p class="soft">{count(data.total, 'tool')}, {tokens(data.tokens)} if all are listed</p>}
      {data && data.tools === undefined && disabled.length === 0 && <p class="soft">None. {may('admin') && <>Definitions may <a href="#/approvals">await review</a>.</>}</p>}
      {data?.tools && <Table label={`Tools of ${server}`} rows={data.tools} columns={columns} id={(t) => t.name} />}
      {disabled.length > 0 && (
        <ul class="list" aria-label="Disabled tools">
          {disabled.map((t) => <li key={t} class="row"><span class="mono soft">{server}.{t}</span> <span class="tag at soft">disabled</span>{may('admin') && <button type="button" onClick={() => void enable(t)}>Enable</button>}</li>)}
        </ul>
      )}
    </>
  )
}

function ToolLink({ tool: t }: { tool: { name: string; stale?: boolean; exposed?: boolean; original?: string } }) {
  return (
    <>
      <a class="mono" href={`#/tools/${encodeURIComponent(t.name)}`}>{t.name}</a>
      {t.exposed && <span class="tag at good" title="clients see it in their list">pinned</span>}
      {t.stale && <span class="tag at warn">disconnected</span>}
      {t.original && <span class="soft small"> was {t.original}</span>}
    </>
  )
}

interface Found {
  name: string
  signature: string
  description: string
  read_only?: boolean
  stale?: boolean
}

const foundColumns: Column<Found>[] = [
  { name: 'Tool', cell: (t) => <ToolLink tool={t} />, class: 'breaks' },
  { name: 'Effect', cell: (t) => <Effect tool={t} /> },
  { name: 'Description', cell: (t) => <><span class="soft brief">{t.description}</span><span class="mono soft small breaks">{t.signature}</span></>, class: 'about' },
]

/** The tools that match, best first: the server ranks them as it does for agents. */
function Matches({ find, server }: { find: string; server: string }) {
  const { data, error } = useData((s) => call<{ tools: Found[]; total: number; servers?: { name: string; matched: number }[] }>('search_tools', { query: find, namespace: server || undefined, limit: 100 }, s), [find, server], toolEvents)
  return (
    <>
      {error && <p class="bad">{error.message}</p>}
      <p class="soft" role="status">{data && `${data.total > data.tools.length ? `the best ${data.tools.length} of ${data.total}` : count(data.total, 'match', 'matches')}${data.servers && data.servers.length > 1 ? `: ${data.servers.map((s) => `${s.name} ${s.matched}`).join(', ')}` : ''}`}</p>
      {data?.tools.length === 0 && <Hint>No tool matches. Try other words.</Hint>}
      {data && data.tools.length > 0 && <section class="panel"><Table label="Tools found" rows={data.tools} columns={foundColumns} id={(t) => t.name} /></section>}
    </>
  )
}
