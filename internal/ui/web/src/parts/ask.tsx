// A button for what cannot be undone: it asks before it acts.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

interface Props {
  label: string
  question: string
  yes: string // the button that acts
  action: () => void | Promise<void>
  name?: string // of the button, if its label is a sign
}

export function Ask({ label, question, yes, action, name }: Props) {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <button type="button" class={name ? 'plain' : ''} aria-label={name} title={name} onClick={() => setAsking(true)}>{label}</button>
      {asking && <Question question={question} yes={yes} close={() => setAsking(false)} action={action} />}
    </>
  )
}

function Question({ question, yes, action, close }: Omit<Props, 'label' | 'name'> & { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-label={question} onClose={close}>
      <p>{question}</p>
      <div class="row actions">
        <button type="button" class="main" onClick={() => { close(); void action() }}>{yes}</button>
        <button type="button" onClick={close}>Back</button>
      </div>
    </dialog>
  )
}
