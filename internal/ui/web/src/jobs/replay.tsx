// A replay of a job, with its own script or another version, and what differs.
import { useState } from 'preact/hooks'
import { call } from '../mcp'
import { Diff } from '../parts/diff'
import { Output, type OutputLine } from '../parts/output'
import { useData } from '../resource'
import { sourceOf, versionsOf } from '../versions'
import type { Job } from './job'
import { Skeleton } from '../parts/skeleton'

interface Replayed {
  steps: number
  unused: number
  diverged: boolean
  error?: { message: string }
  output: OutputLine[]
  result?: unknown
}

export function Replay({ job, lines }: { job: Job; lines: OutputLine[] }) {
  const versions = useData((s) => (job.script_hash ? versionsOf(job.script_hash, s) : Promise.resolve([])), [job.script_hash])
  const [hash, setHash] = useState('')
  const [done, setDone] = useState<{ hash: string; answer?: Replayed; error?: string }>()
  const run = async () => {
    try {
      setDone({ hash, answer: await call<Replayed>('job_replay', { job_id: job.job_id, ...(hash && { script_hash: hash }) }) })
    } catch (e) {
      setDone({ hash, error: (e as Error).message })
    }
  }
  return (
    <section class="panel" aria-label="Replay">
      <h2>Replay</h2>
      <p class="soft small">Runs the script again with the recorded answers: nothing is called or written.</p>
      <div class="row">
        <label for="replay-with">with</label>
        <select id="replay-with" value={hash} onChange={(e) => setHash(e.currentTarget.value)}>
          <option value="">the same script</option>
          {versions.data?.filter((v) => v.hash !== job.script_hash).map((v) => <option key={v.hash} value={v.hash}>{v.label}</option>)}
        </select>
        <button type="button" onClick={() => void run()}>Replay</button>
      </div>
      {done?.error && <p class="bad">{done.error}</p>}
      {done?.answer && <Difference job={job} lines={lines} hash={done.hash} answer={done.answer} />}
    </section>
  )
}

function Difference({ job, lines, hash, answer }: { job: Job; lines: OutputLine[]; hash: string; answer: Replayed }) {
  const before = described(job.result, lines, job.error?.message), after = described(answer.result, answer.output, answer.error?.message)
  return (
    <>
      {answer.diverged && <p class="warn">It asked for other effects than the recorded ones: {answer.error?.message}</p>}
      <p role="status">{before === after && !answer.diverged ? <span class="good">Same result and output.</span> : <span class="warn">The result or output differs.</span>} <span class="soft">{answer.steps - answer.unused} of {answer.steps} steps answered from the recording.</span></p>
      {before !== after && <Diff before={before} after={after} />}
      {answer.error && !answer.diverged && <Output lines={answer.output} />}
      {hash && job.script_hash && <details><summary>Difference of the scripts</summary><Sources one={job.script_hash} other={hash} /></details>}
    </>
  )
}

function Sources({ one, other }: { one: string; other: string }) {
  const { data, error } = useData((s) => Promise.all([sourceOf(one, s), sourceOf(other, s)]), [one, other])
  if (error) return <p class="bad">{error.message}</p>
  return data ? <Diff before={data[0]} after={data[1]} /> : <Skeleton />
}

/** A run as text, line by line, to compare it with another. */
function described(result: unknown, lines: OutputLine[], error?: string): string {
  return [...lines.map((l) => l.text), ...(error ? [`error: ${error}`] : [`result: ${JSON.stringify(result ?? null, null, 2)}`])].join('\n')
}
