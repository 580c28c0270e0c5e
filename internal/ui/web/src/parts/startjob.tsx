// Starts a stored script as a job, with a form for its parameters.
import { useState } from 'preact/hooks'
import { call, type Schema } from '../mcp'
import { useData } from '../resource'
import { go } from '../route'
import { attempt } from '../upstream'
import { Form, useCheck, type Values } from './form'

export function StartJob({ hash, started }: { hash: string; started?: () => void }) {
  const described = useData((s) => call<{ input_schema?: Schema }>('lua_describe', { script_hash: hash }, s), [hash])
  const [values, setValues] = useState<Values>({})
  const schema = described.data?.input_schema
  const { problems, valid } = useCheck(schema, values)
  const start = async () => {
    if (!valid()) return
    await attempt(async () => {
      const job = await call<{ job_id: string }>('lua_execute', { script_hash: hash, params: values })
      started?.()
      go(`jobs/${job.job_id}`)
    })
  }
  return (
    <form class="panel" aria-label="Start as a job" onSubmit={(e) => { e.preventDefault(); void start() }}>
      <h2>Start as a job</h2>
      {described.error && <p class="bad">{described.error.message}</p>}
      {schema?.properties && Object.keys(schema.properties).length > 0 && <Form schema={schema} values={values} change={setValues} problems={problems} />}
      <div class="row actions"><button type="submit" class="main" disabled={!described.data && !described.error}>Start</button></div>
    </form>
  )
}
