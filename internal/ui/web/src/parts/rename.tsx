// The form that gives a tool another name.
import { useState } from 'preact/hooks'
import { changeTool, type ListedTool } from '../tools'
import { Dialog } from './dialog'

export function Rename({ tool: t, close, moved }: { tool: ListedTool; close: () => void; moved: (name: string) => void }) {
  const [server, ...rest] = t.name.split('.')
  const now = rest.join('.')
  const [name, setName] = useState(now)
  const rename = async () => {
    close()
    await changeTool(t.name, { alias: name }, { alias: t.original ? now : '' }, `${t.name} is ${server}.${name || t.original} now; its own name works as well`, moved)
  }
  return (
    <Dialog title={`Rename ${t.name}`} close={close}>
      <form onSubmit={(e) => { e.preventDefault(); void rename() }}>
        <label for="rename-name">Name</label>
        <input id="rename-name" required pattern="[A-Za-z][A-Za-z0-9_\-]{0,63}" title="a letter, then letters, digits, _ or -" value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <p class="soft">Agents and scripts find it under this name. The server's own name {t.original ?? now} goes on working.</p>
        <div class="row actions">
          <button class="main" type="submit" disabled={name === now}>Rename</button>
          {t.original && <button type="button" onClick={() => setName(t.original!)}>Use its own name</button>}
          <button type="button" onClick={close}>Cancel</button>
        </div>
      </form>
    </Dialog>
  )
}
