// A server with something on every page: real MCP servers from npm, scripts with versions,
// jobs, schedules, artifacts, approvals, a conversation and traces.
import { expect } from '@playwright/test'
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fakeModel, type Model } from './model'
import { Server } from './server'
import { midi, png, upstream, wav, type Upstream } from './upstream'

/** The folder with the programs of the npm packages that `make servers` installs. */
const programs = join(process.env.LUANETTE_TEST_SERVERS ?? resolve('../servers/node_modules'), '.bin')

export interface Stage {
  front: Server
  script: string // published twice
  job: string
  other: string // a job of the earlier version
  artifact: string
  traces: string[]
  close: () => Promise<void>
}

export async function openStage(): Promise<Stage> {
  if (!existsSync(programs)) throw new Error(`${programs} is missing: run make servers`)
  const gallery = await upstream(), model = await fakeModel()
  const front = serverOf(gallery, model)
  await front.start()
  await expect.poll(async () => JSON.stringify(await front.call('mcp_list_upstreams', {})).match(/"state":"connected"/g)?.length).toBe(5) // with the music tools
  const { script, jobs } = await work(front)
  await keepApproval(front)
  await converse(front)
  const artifact = await artifacts(front)
  await compose(front)
  return {
    front, script, job: jobs[1], other: jobs[0], artifact, traces: await callTwice(front),
    close: async () => {
      await front.remove()
      gallery.close()
      model.close()
    },
  }
}

function serverOf(gallery: Upstream, model: Model): Server {
  const front: Server = new Server(() => {
    const files = join(realpathSync(front.folder), 'files')
    mkdirSync(files, { recursive: true })
    writeFileSync(join(files, 'notes.txt'), 'buy milk\n')
    return `[upstreams.everything]\ncommand = "${programs}/mcp-server-everything"\nargs = ["stdio"]
[upstreams.files]\ncommand = "${programs}/mcp-server-filesystem"\nargs = ["${files}"]
[upstreams.memory]\ncommand = "${programs}/mcp-server-memory"
[upstreams.gallery]\nurl = "${gallery.address}/mcp"
[approvals]\n"files.write_file" = "writes"\n[scripts]\ntimeout = "10m"\n[music]\nenabled = true\n`
  }, { LUANETTE_CHAT_BASE_URL: model.address, ANTHROPIC_API_KEY: 'sk-test' })
  return front
}

const report = (word: string) => `function describe()
  return { name = "morning_report", description = "Counts what happened.", params = { days = { type = "integer", description = "how many days", default = 2 } } }
end

function main(p)
  progress(0.3, "${word}")
  local sum = mcp.everything["get-sum"]{ a = p.days, b = 40 }
  print("${word} " .. p.days .. " days")
  return { days = p.days, sum = sum, word = "${word}" }
end
`

/** Two versions of a script, their jobs, one that fails and a schedule. The newest job is one that ends well. */
async function work(front: Server): Promise<{ script: string; jobs: string[] }> {
  const started: string[] = []
  const start = async (hash: string, params: object, tags: string[]) => {
    const id = String((await front.call('lua_execute', { script_hash: hash, params, tags })).job_id)
    await front.call('job_poll', { job_ids: [id], mode: 'all', timeout_ms: 60_000 })
    started.push(id)
  }
  const { hash: broken } = await front.call('script_store', { content: 'function main(p)\n  return p.none.field\nend' })
  await start(String(broken), {}, ['env:test'])
  let script = ''
  for (const word of ['counted', 'summed']) {
    script = String((await front.call('script_store', { content: report(word), tags: ['team:reports'], ...(script && { parent: script }) })).hash)
    await front.call('script_publish', { script_hash: script })
    await start(script, { days: 2 }, ['env:prod'])
  }
  await front.call('lua_execute', { script_hash: script, params: { days: 7 }, schedule: '0 7 * * 1-5' })
  return { script, jobs: started.slice(1) }
}

/** A script that waits for approval, and a remembered decision. */
async function keepApproval(front: Server): Promise<void> {
  const waits = async (text: string) => {
    const { hash } = await front.call('script_store', { content: `function main() return mcp.files.write_file{path = "notes.txt", content = "${text}"} end` })
    await front.call('lua_execute', { script_hash: hash })
  }
  await waits('buy bread')
  await waits('buy tea')
  await expect.poll(async () => ((await front.call('approval_list', {})).approvals as unknown[]).length).toBe(2)
}

/** A conversation with code, a table and a call of a tool. */
async function converse(front: Server): Promise<void> {
  for (const message of ['the slowest tool, as Markdown', 'what is six times seven?']) {
    const answer = await front.fetch('/api/v1/chat', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ client_id: 'page', user_id: 'local', org: 'default', chat_id: 'kept', message }) })
    if (!answer.ok) throw new Error(await answer.text())
  }
}

async function artifacts(front: Server): Promise<string> {
  const create = async (content: Buffer, type: string, more: object) => {
    const stored = await front.fetch('/cas', { method: 'POST', headers: { 'Content-Type': type }, body: content })
    const { hash } = (await stored.json()) as { hash: string }
    return String((await front.call('call_tool', { name: 'hootenanny.artifact_create', arguments: { cas_hash: hash, ...more } })).artifact_id)
  }
  const tune = await create(midi(), 'audio/midi', { name: 'three notes', tags: ['mood:plain'], creator: 'ada', variation_set_id: 'pair' })
  await create(wav(), 'audio/wav', { name: 'silence', creator: 'ada', parent_id: tune, variation_set_id: 'pair' })
  await create(Buffer.from(png, 'base64'), 'image/png', { name: 'dot', creator: 'bob' })
  await create(Buffer.from('{"deep": {"er": 1}}'), 'application/json', { name: 'numbers', creator: 'bob' })
  return tune
}

/** A timeline with regions and a marker. */
async function compose(front: Server): Promise<void> {
  const music = (name: string, args: object) => front.call('call_tool', { name: `hootenanny.${name}`, arguments: { project: 'suite', ...args } })
  const stored = await front.fetch('/cas', { method: 'POST', headers: { 'Content-Type': 'audio/wav' }, body: wav() })
  const { hash } = (await stored.json()) as { hash: string }
  await music('garden_create_region', { position: 0, duration: 24, behavior_type: 'play_content', content_id: hash, name: 'opening' })
  await music('garden_create_region', { position: 16, duration: 8, behavior_type: 'latent', name: 'a bridge that is still to be written' })
  await music('garden_create_region', { position: 24, duration: 16, behavior_type: 'latent', name: 'ending' })
  await music('garden_add_marker', { position: 24, marker_type: 'section_change' })
}

/** Calls a tool twice and returns the ids of both traces. */
async function callTwice(front: Server): Promise<string[]> {
  for (const code of ['return mcp.everything.echo{message = "one"}', 'return mcp.everything.echo{message = "two"}']) await front.call('lua_eval', { code })
  const list = async () => ((await (await front.fetch('/api/v1/traces?limit=50')).json()) as { traces: { trace_id: string; name: string; span_count: number }[] }).traces
  const evals = async () => (await list()).filter((t) => t.name === 'tools/call lua_eval' && t.span_count > 3).map((t) => t.trace_id)
  await expect.poll(async () => (await evals()).length).toBe(2)
  return evals()
}
