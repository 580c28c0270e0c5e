// A button for what cannot be undone: it asks before it acts.
import { useState } from 'preact/hooks'
import { Dialog } from './dialog'

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
  return (
    <Dialog title={question} plain close={close}>
      <p>{question}</p>
      <div class="row actions">
        <button type="button" class="main" onClick={() => { close(); void action() }}>{yes}</button>
        <button type="button" onClick={close}>Back</button>
      </div>
    </Dialog>
  )
}
