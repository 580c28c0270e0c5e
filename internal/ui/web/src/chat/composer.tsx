// Writes a message: text, files, the model and the mode.
import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { size } from '../format'
import { notify } from '../parts/notices'
import { useData } from '../resource'
import { Icon } from '../shell/icon'
import { chooseMode, loadModes, type Attachment, type Model } from './conversation'

const mostAttached = 20_000_000

/** A question that somebody wants to ask in other words: the composer takes it over. */
export const edited = signal('')

interface Props {
  model?: Model
  busy: boolean
  draft: string // key of the text that was written but not sent
  send: (text: string, files: Attachment[], model: string) => void
  stop: () => void
}

export function Composer({ model, busy, draft, send, stop }: Props) {
  const [text, setText] = useState(() => sessionStorage.getItem(draft) ?? '')
  const [files, setFiles] = useState<Attachment[]>([])
  const [chosen, setChosen] = useState(() => localStorage.getItem('chat.model') ?? '')
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => { // as high as its text
    if (!area.current) return
    area.current.style.height = 'auto'
    area.current.style.height = `${Math.min(area.current.scrollHeight + 2, 240)}px`
  }, [text])
  useEffect(() => { area.current?.focus() }, [])
  useEffect(() => {
    if (!edited.value) return
    write(edited.value)
    edited.value = ''
    area.current?.focus()
  }, [edited.value])
  const write = (value: string) => {
    setText(value)
    if (value) sessionStorage.setItem(draft, value)
    else sessionStorage.removeItem(draft)
  }
  const attach = (list: Iterable<File>) => void read(list, files).then(setFiles, (e: Error) => notify('bad', e.message))
  const submit = () => {
    const message = text.trim()
    if ((!message && files.length === 0) || busy) return
    write('')
    setFiles([])
    send(message, files, model?.models.includes(chosen) ? chosen : '')
  }
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); submit() }}
      onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); if (e.dataTransfer) attach(e.dataTransfer.files) }}>
      {files.length > 0 && (
        <ul class="row attached" aria-label="Attached files">
          {files.map((f, i) => (
            <li key={i}>{f.mime_type.startsWith('image/') && <img src={`data:${f.mime_type};base64,${f.data}`} alt="" />}{f.name} <span class="soft">{size(f.size)}</span>
              <button type="button" class="plain" aria-label={`Remove ${f.name}`} onClick={() => setFiles(files.filter((_, n) => n !== i))}>×</button></li>
          ))}
        </ul>
      )}
      <label class="hidden" for="message">Message</label>
      <textarea id="message" ref={area} rows={1} value={text} placeholder="Message the agent" onInput={(e) => write(e.currentTarget.value)}
        onPaste={(e) => { if (e.clipboardData && e.clipboardData.files.length > 0) { e.preventDefault(); attach(e.clipboardData.files) } }}
        onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit() } }} />
      <div class="row">
        <label class="button plain">
          <Icon name="attach" /><span>Attach</span><input class="hidden" type="file" multiple aria-label="Attach files"
            onChange={(e) => { attach(Array.from(e.currentTarget.files ?? [])); e.currentTarget.value = '' }} />
        </label>
        <Models model={model} chosen={chosen} choose={(name) => { setChosen(name); localStorage.setItem('chat.model', name) }} />
        <Modes />
        <span class="end">
          {busy ? <button type="button" onClick={stop}><Icon name="stop" />Stop</button> : <button class="main" type="submit" disabled={model && !model.configured}>Send</button>}
        </span>
      </div>
    </form>
  )
}

function Models({ model, chosen, choose }: { model?: Model; chosen: string; choose: (name: string) => void }) {
  if (!model?.configured || !model.model) return null
  if (model.models.length < 2) return <span class="soft small">{model.model}</span>
  return (
    <select aria-label="Model" class="quiet" value={model.models.includes(chosen) ? chosen : model.models[0]} onChange={(e) => choose(e.currentTarget.value)}>
      {model.models.map((name) => <option key={name}>{name}</option>)}
    </select>
  )
}

function Modes() {
  const { data, reload } = useData(loadModes, [])
  if (!data || data.modes.length === 0) return null
  return (
    <select aria-label="Mode" class="quiet" value={data.mode} onChange={(e) => void chooseMode(e.currentTarget.value).then(reload, (p: Error) => notify('bad', p.message))}>
      <option value="">no mode</option>
      {data.modes.map((name) => <option key={name}>{name}</option>)}
    </select>
  )
}

/** Reads files to attach. */
async function read(chosen: Iterable<File>, before: Attachment[]): Promise<Attachment[]> {
  const all = [...before]
  for (const file of chosen) {
    const url = await new Promise<string>((resolve, reject) => {
      const reader = new FileReader()
      reader.onload = () => resolve(reader.result as string)
      reader.onerror = () => reject(new Error(`cannot read ${file.name}`))
      reader.readAsDataURL(file)
    })
    all.push({ name: file.name, mime_type: file.type, data: url.slice(url.indexOf(',') + 1), size: file.size })
  }
  if (all.reduce((sum, a) => sum + a.size, 0) > mostAttached) throw new Error(`Attachments may have ${size(mostAttached)} together.`)
  return all
}
