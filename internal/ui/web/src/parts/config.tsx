// The effective configuration: each key with its value and where it was set.
import { useState } from 'preact/hooks'
import { errorOf, request } from '../api'
import { useData } from '../resource'
import { Hint } from './hint'
import { placeOf, type Settings } from './livesettings'
import { Skeleton } from './skeleton'

interface Line {
  section: string
  key: string
  value: string
  from: string
  help: string
}

export function Config({ file }: { file?: Settings }) {
  const { data, error } = useData(async (signal) => {
    const response = await request('/api/v1/config', { signal })
    if (!response.ok) throw await errorOf(response)
    return response.text()
  }, [], ['config.'])
  const [query, setQuery] = useState('')
  const [onlySet, setOnlySet] = useState(true)
  if (error) return <p class="bad">{error.message}</p>
  if (data === undefined) return <Skeleton />
  const all = read(data)
  const shown = all.filter((l) => (!onlySet || l.from !== 'default' || query) && `${l.section}.${l.key} ${l.help}`.toLowerCase().includes(query.toLowerCase()))
  const sections = [...new Set(shown.map((l) => l.section))]
  return (
    <>
      <Hint>The same as `luanette config show`, without secrets, with where each is set. The others are changed in `luanette.toml`, and say so if they need a restart.</Hint>
      <div class="row filters">
        <label for="config-words">Find</label>
        <input id="config-words" type="search" value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        <label><input type="checkbox" checked={onlySet} onChange={(e) => setOnlySet(e.currentTarget.checked)} /> only changed settings</label>
        <span class="soft" role="status">{shown.length} of {all.length}</span>
      </div>
      {shown.length === 0 && <Hint>No settings were changed; all have their default.</Hint>}
      <table class="stack config" aria-label="Configuration">
        {sections.map((section) => (
          <tbody key={section}>
            {section && <tr><th scope="rowgroup" colSpan={4}>[{section}]</th></tr>}
            {shown.filter((l) => l.section === section).map((l) => (
              <tr key={l.key} class={l.from === 'default' ? '' : 'given'}>
                <td class="mono">{l.key}</td><td class="mono breaks">{l.value}</td><td class="soft">{placeOf(file, l.section ? `${l.section}.${l.key}` : l.key) || l.from}</td><td class="soft small">{l.help}</td>
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </>
  )
}

/** Reads lines such as: key = 'value'   # default, LUANETTE_KEY; what it is for */
export function read(text: string): Line[] {
  const lines: Line[] = []
  let section = ''
  for (const raw of text.split('\n')) {
    const head = /^\[(.+)\]\s*$/.exec(raw)
    if (head) section = head[1]
    const pair = /^([^#=\s][^=]*?)\s*=\s*(.*)$/.exec(raw)
    if (head || !pair) continue
    const [value, about = ''] = cut(pair[2])
    const [source, ...help] = about.split('; ')
    lines.push({ section, key: pair[1], value, from: source.split(/[,;]/)[0] || 'file', help: help.join('; ') })
  }
  return lines
}

/** A value and the comment after it; a # in quotes does not begin a comment. */
function cut(text: string): [string, string?] {
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const c = text[i]
    if (quote) quote = c === quote ? '' : quote
    else if (c === '"' || c === "'") quote = c
    else if (c === '#') return [text.slice(0, i).trim(), text.slice(i + 1).trim()]
  }
  return [text.trim()]
}
