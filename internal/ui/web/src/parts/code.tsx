// The question for the code that a server without keys printed when it started.
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { Dialog } from './dialog'

interface Question {
  problem: string // of the last answer; may be empty
  answer: (code: string) => void
  cancel: () => void
}

const question = signal<Question | undefined>(undefined)

/** Asks for the code; the promise is rejected if the person closes the dialog. */
export const askForCode = (problem: string) =>
  new Promise<string>((answer, reject) => {
    question.value = { problem, answer, cancel: () => reject(new Error('nothing was changed: the code of the server is needed')) }
  }).finally(() => { question.value = undefined })

/** The dialog; it is on every page. */
export const CodeQuestion = () => question.value ? <Code {...question.value} /> : null

function Code({ problem, answer, cancel }: Question) {
  const [code, setCode] = useState('')
  return (
    <Dialog title="Code of the server" close={cancel}>
      <form onSubmit={(e) => { e.preventDefault(); answer(code.trim()) }}>
        <p>{problem} A program will run with your rights. So that nobody else on this machine can start one, type the code that the server printed when it started; it is also in the file <code>page_code</code> of its data folder.</p>
        <label>Code <input value={code} onInput={(e) => setCode(e.currentTarget.value)} placeholder="XXXX-XXXX" autocomplete="off" spellcheck={false} required /></label>
        <div class="row actions">
          <button type="submit" class="main">Continue</button>
          <button type="button" onClick={cancel}>Cancel</button>
        </div>
      </form>
    </Dialog>
  )
}
