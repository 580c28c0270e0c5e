// How a server without a model gets one: it is chosen, tried and stored here.
import { useState } from 'preact/hooks'
import { get, may, post } from '../api'
import { Command } from '../parts/command'
import { useAttempt } from '../parts/fields'
import { useData } from '../resource'

interface Found {
  changeable: boolean
  local: { name: string; base_url: string; models: string[] }[]
}

interface Choice {
  provider: 'anthropic' | 'openai'
  base_url: string
  model: string
  key: string
}

/** The providers of the form. */
const providers: Record<string, { name: string; provider: Choice['provider']; base_url: string; model: string; key: boolean }> = {
  anthropic: { name: 'Claude (Anthropic)', provider: 'anthropic', base_url: '', model: '', key: true },
  openai: { name: 'OpenAI', provider: 'openai', base_url: '', model: '', key: true },
  other: { name: 'Another endpoint with OpenAI’s API', provider: 'openai', base_url: 'http://127.0.0.1:11434/v1', model: '', key: true },
}

export function SetUp({ problem, done }: { problem?: string; done: () => void }) {
  const { data } = useData((s) => (may('admin') ? get<Found>('/api/v1/setup/model', s) : Promise.resolve({ changeable: false, local: [] })), [])
  return (
    <section class="setup" aria-label="Set up a model">
      <h2>The chat needs a model</h2>
      <p class="soft">Your agents work without it. With a model you can ask for things here, too: it uses every connected tool, and what changes something waits for your approval where the policy says so.</p>
      {data?.changeable && <Choose found={data} done={done} />}
      {data && !data.changeable && <ByFile />}
      <p><a href="#/docs/chat?at=models">All providers and settings</a></p>
      {problem && <details class="small soft"><summary>What the server says</summary><p>{problem}</p></details>}
    </section>
  )
}

/** The form. What runs on this machine comes first: it costs nothing, and needs no key. */
function Choose({ found, done }: { found: Found; done: () => void }) {
  const local = Object.fromEntries(found.local.map((l) => [l.name, { name: `${l.name}, on this machine`, provider: 'openai' as const, base_url: l.base_url, model: l.models[0], key: false }]))
  const all = { ...local, ...providers }
  const [name, setName] = useState(Object.keys(all)[0])
  const [typed, setTyped] = useState<Partial<Choice>>({})
  const { busy, failure, problems, attempt } = useAttempt(done)
  const picked = all[name]
  const chosen: Choice = { provider: picked.provider, base_url: picked.base_url, model: picked.model, key: '', ...typed }
  const models = found.local.find((l) => l.name === name)?.models
  const store = async () => {
    await post('/api/v1/setup/model', { ...chosen, key: chosen.key || undefined }, 'PUT')
    return 'the model answers: ask it something'
  }
  return (
    <form class="panel" aria-label="Model" onSubmit={(e) => { e.preventDefault(); attempt(store) }}>
      <label for="model-provider">Provider</label>
      <select id="model-provider" value={name} onChange={(e) => { setName(e.currentTarget.value); setTyped({}) }}>{Object.entries(all).map(([key, p]) => <option key={key} value={key}>{p.name}</option>)}</select>
      {name === 'other' && <><label for="model-url">Address</label><input id="model-url" type="url" required value={chosen.base_url} onInput={(e) => setTyped({ ...typed, base_url: e.currentTarget.value })} />{problems.base_url && <p class="bad small problem" role="alert">{problems.base_url}</p>}</>}
      {picked.key && <><label for="model-key">Key{name === 'other' && ', if it needs one'}</label><input id="model-key" type="password" autocomplete="off" required={name !== 'other'} value={chosen.key} onInput={(e) => setTyped({ ...typed, key: e.currentTarget.value })} /><p class="soft small">It is stored in a file of the data folder that only you can read, and sent to nobody else.</p></>}
      <label for="model-name">Model{name === 'anthropic' && ' (empty: the usual one)'}</label>
      {models
        ? <select id="model-name" value={chosen.model} onChange={(e) => setTyped({ ...typed, model: e.currentTarget.value })}>{models.map((m) => <option key={m}>{m}</option>)}</select>
        : <input id="model-name" required={name !== 'anthropic'} placeholder={name === 'openai' ? 'gpt-5' : ''} value={chosen.model} onInput={(e) => setTyped({ ...typed, model: e.currentTarget.value })} />}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <div class="row actions"><button class="main" type="submit" disabled={busy}>{busy ? 'Testing…' : 'Test and save'}</button></div>
    </form>
  )
}

/** For those who may not change the configuration from here. */
function ByFile() {
  return (
    <>
      <p class="soft small">The owner sets it up on the machine of the server, on this page or in <code>luanette.toml</code>:</p>
      <Command text={'[chat]\nprovider = "openai"\nbase_url = "http://127.0.0.1:11434/v1"\nmodel = "qwen3"'} />
      <p class="soft small">For Claude, start the server with the key in its environment:</p>
      <Command text="export ANTHROPIC_API_KEY=…" />
    </>
  )
}
