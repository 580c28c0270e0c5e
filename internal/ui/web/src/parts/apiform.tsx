// The form to add an API that is no MCP server.
import { useState } from 'preact/hooks'
import { addServer, apiKindOf, apiKinds, nameOfAddress } from '../setup'
import { SettingField, useAttempt } from './fields'
import { Hint } from './hint'

export function APIForm({ text, change, done, cancel }: { text: string; change: (text: string) => void; done: () => void; cancel?: () => void }) {
  const [chosen, setChosen] = useState<string>()
  const kind = chosen ?? apiKindOf(text) ?? Object.keys(apiKinds)[0]
  const [name, setName] = useState<string>()
  const [base, setBase] = useState('')
  const [settings, setSettings] = useState<Record<string, unknown>>({})
  const { busy, failure, problems, attempt } = useAttempt(done)
  const add = async () => {
    const all = { [kind]: text.trim(), ...settings, ...(base && kind === 'openapi' && { api: { base_url: base } }) }
    return `${await addServer(name ?? nameOfAddress(text), all)} added, reading what it offers`
  }
  const field = (key: string) => <SettingField name={key} value={settings[key]} problem={problems[key]} change={(v) => setSettings((s) => ({ ...s, [key]: v }))} />
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(add) }}>
      {Object.keys(apiKinds).length > 1 && <><label for="api-kind">Kind</label><select id="api-kind" value={kind} onChange={(e) => setChosen(e.currentTarget.value)}>{Object.entries(apiKinds).map(([key, k]) => <option key={key} value={key}>{k.title}</option>)}</select></>}
      <label for="api-source">{apiKinds[kind].label}</label>
      <input id="api-source" required spellcheck={false} placeholder={apiKinds[kind].placeholder} value={text} aria-invalid={problems[kind] ? 'true' : undefined} onInput={(e) => change(e.currentTarget.value)} />
      {problems[kind] && <p class="bad small problem" role="alert">{problems[kind]}</p>}
      <label for="api-name">Name</label>
      <input id="api-name" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={name ?? nameOfAddress(text)} onInput={(e) => setName(e.currentTarget.value)} />
      {kind === 'openapi' && <><label for="api-base">URL of the API <span class="soft">if it is not the one that the document names</span></label>
      <input id="api-base" placeholder="https://api.example.org/v1" value={base} onInput={(e) => setBase(e.currentTarget.value)} /></>}
      {field('headers')}
      {field('read_only')}
      {(failure || problems.api) && <p class="bad" role="alert">{failure || problems.api}</p>}
      <Hint>{'Each operation of the API becomes a tool. It is added to `luanette.toml`; a header may refer to a secret, such as `${env:NAME}`.'}</Hint>
      <div class="row actions"><button class="main" type="submit" disabled={busy}>Connect</button>{cancel && <button type="button" onClick={cancel}>Cancel</button>}</div>
    </form>
  )
}
