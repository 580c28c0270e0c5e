// What can be done about a step: make the call again, or a rule about it.
import { useState } from 'preact/hooks'
import { get, may, post } from '../api'
import { count } from '../format'
import { callRaw, textOf } from '../mcp'
import { Copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { notify } from '../parts/notices'
import { Value } from '../parts/value'
import { useSettings } from '../parts/livesettings'
import { useData } from '../resource'
import type { Session, Step } from './model'
import { ruleOf, tomlOf, type Rule as PolicyRule } from './script'

/** Makes the call again, as the user of the page. What the record left out cannot be sent. */
export function Replay({ step, close }: { step: Step; close: () => void }) {
  const [busy, setBusy] = useState(false)
  const [came, setCame] = useState<{ good: boolean; text: string }>()
  const sent = JSON.stringify(step.args ?? {})
  const incomplete = sent.includes('…') || sent.includes('[redacted]')
  const again = async () => {
    setBusy(true)
    try {
      const result = step.tool.includes('.') ? await callRaw('call_tool', { name: step.tool, arguments: step.args ?? {} }) : await callRaw(step.tool, step.args ?? {})
      setCame({ good: true, text: textOf(result) })
    } catch (e) {
      setCame({ good: false, text: (e as Error).message })
    }
    setBusy(false)
  }
  return (
    <Dialog title={`Call ${step.tool} again`} close={close}>
      <p>It is called now, as you, with these arguments. Rules and approvals apply as to any call.</p>
      <Value value={step.args ?? {}} />
      {incomplete && <p class="warn">The record has not all of these arguments: parts were long, or looked secret. Use the tool's own page.</p>}
      {came && <pre class={came.good ? '' : 'bad'} role="status">{came.text}</pre>}
      <div class="row actions"><button type="button" class="main" disabled={busy || incomplete} onClick={() => void again()}>Call again</button><button type="button" onClick={close}>Close</button></div>
    </Dialog>
  )
}

export type Verdict = PolicyRule['do']

export const verdicts: Verdict[] = ['allow', 'approve', 'deny']

/** What is said of the rules that a step offers. */
export const ruleWords: Record<Verdict, { title: string; means: string; done: string }> = {
  allow: { title: 'Always allow', means: 'allowed without a question', done: 'is always allowed' },
  approve: { title: 'Always ask', means: 'carried out once a person has approved it', done: 'always asks' },
  deny: { title: 'Never allow', means: 'denied', done: 'is never allowed' },
}

interface Decided {
  decision?: string
  error?: string
}

/** A rule for luanette.toml, and what it would have decided in the last week. */
export function Rule({ session, step, verdict, close }: { session: Session; step: Step; verdict: Verdict; close: () => void }) {
  const since = new Date(Date.now() - 7 * 86_400_000).toISOString()
  const query = new URLSearchParams({ tool: step.tool, who: session.who, since, limit: '10000' })
  const { data } = useData((s) => get<{ entries: Decided[] }>(`/api/v1/audit?${query.toString()}`, s), [step.tool, session.who])
  const all = data?.entries.length ?? 0, asked = data?.entries.filter((e) => e.decision === 'ask').length ?? 0, denied = data?.entries.filter((e) => e.decision === 'deny').length ?? 0
  const before = { allow: `${asked} asked for approval, ${denied} were denied`, approve: `${all - asked} did not ask`, deny: `${all - denied} were not denied` }
  const { title, means, done } = ruleWords[verdict]
  const rule = ruleOf(session, step, verdict)
  const settings = useSettings(may('admin'))
  const [problem, setProblem] = useState('')
  const add = async () => {
    try {
      await post('/api/v1/setup/rules', rule)
      notify('good', `${step.tool} ${done}`, () => void post('/api/v1/setup/rules/remove', rule).then(() => notify('good', 'the rule is removed'), (e: Error) => notify('bad', e.message)))
      close()
    } catch (e) {
      setProblem((e as Error).message)
    }
  }
  return (
    <Dialog title={title} close={close}>
      <p><code>{step.tool}</code> is {means}, {rule.key ? <>for <b>{session.name}</b></> : 'for everybody'}. The first rule that matches a call decides.</p>
      {data && <p class="soft">In the last 7 days it would have decided {count(all, 'call')}: {before[verdict]}.</p>}
      <p class="soft small">{settings.data?.changeable ? <>It is written to <code>{settings.data.file}</code>, before the other rules, and applies at once:</> : <>Add this to <code>luanette.toml</code>, before other rules; it applies when the file is saved:</>}</p>
      <pre>{tomlOf(rule)}</pre>
      {problem && <p class="bad" role="alert">{problem}</p>}
      <div class="row actions">{settings.data?.changeable && <button type="button" class="main" onClick={() => void add()}>{title}</button>}<Copy text={tomlOf(rule)}>Copy the rule</Copy><button type="button" onClick={close}>Close</button></div>
    </Dialog>
  )
}
