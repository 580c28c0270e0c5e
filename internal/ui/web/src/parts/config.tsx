// The configuration that holds: each key with its value, and who said so.
import { useState } from 'preact/hooks'
import { ask, refusal } from '../api'
import { useData } from '../resource'
import { Hint } from './hint'

interface Line {
  section: string
  key: string
  value: string
  from: string
  help: string
}

export function Config() {
  const { data, error } = useData(async (signal) => {
    const answer = await ask('/api/v1/config', { signal })
    if (!answer.ok) throw await refusal(answer)
    return answer.text()
  }, [], ['config.'])
  const [words, setWords] = useState('')
  const [given, setGiven] = useState(true)
  if (error) return <p class="bad">{error.message}</p>
  if (data === undefined) return <p class="soft">…</p>
  const all = read(data)
  const shown = all.filter((l) => (!given || l.from !== 'default' || words) && `${l.section}.${l.key} ${l.help}`.toLowerCase().includes(words.toLowerCase()))
  const sections = [...new Set(shown.map((l) => l.section))]
  return (
    <>
      <Hint>As `luanette config show` prints it, without secrets. To change it, edit `luanette.toml`: the server notices.</Hint>
      <div class="row filters">
        <label for="config-words">Find</label>
        <input id="config-words" type="search" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
        <label><input type="checkbox" checked={given} onChange={(e) => setGiven(e.currentTarget.checked)} /> only what somebody set</label>
        <span class="soft" role="status">{shown.length} of {all.length}</span>
      </div>
      {shown.length === 0 && <Hint>Nothing: the defaults hold.</Hint>}
      <table class="stack config" aria-label="Configuration">
        {sections.map((section) => (
          <tbody key={section}>
            {section && <tr><th scope="rowgroup" colSpan={4}>[{section}]</th></tr>}
            {shown.filter((l) => l.section === section).map((l) => (
              <tr key={l.key} class={l.from === 'default' ? '' : 'given'}>
                <td class="mono">{l.key}</td><td class="mono breaks">{l.value}</td><td class="soft">{l.from}</td><td class="soft small">{l.help}</td>
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

/** A value and the comment behind it; a # in quotes is no comment. */
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
