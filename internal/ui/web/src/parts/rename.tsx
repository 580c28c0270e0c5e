// The form that gives a tool another name.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { changeTool, type ListedTool } from '../tools'

export function Rename({ tool: t, close, moved }: { tool: ListedTool; close: () => void; moved: (name: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [server, ...rest] = t.name.split('.')
  const now = rest.join('.')
  const [name, setName] = useState(now)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  const rename = async () => {
    close()
    await changeTool(t.name, { alias: name }, { alias: t.original ? now : '' }, `${t.name} is ${server}.${name || t.original} now; its own name works as well`, moved)
  }
  return (
    <dialog ref={dialog} aria-labelledby="rename-title" onClose={close}>
      <h2 id="rename-title">Rename {t.name}</h2>
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
    </dialog>
  )
}
