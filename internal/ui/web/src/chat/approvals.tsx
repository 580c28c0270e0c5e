// Approvals that scripts of a conversation wait for, decided where they are asked.
import { useState } from 'preact/hooks'
import { call } from '../mcp'
import { useData } from '../resource'
import { notify } from '../parts/notices'
import { Json } from '../parts/json'
import { Plan, type Planned } from '../parts/plan'
import { State } from '../parts/state'

interface Approval {
  approval_id: string
  status: string
  subject: string
  created_at: string
  plan_digest: string
  plan: Planned[]
}

interface Props {
  results: string // of the conversation's calls; they name the approvals that they wait for
  since?: string // while an answer arrives: approvals that were requested since, by jobs
}

export function Approvals({ results, since }: Props) {
  const [decided, setDecided] = useState<(Approval & { outcome?: unknown })[]>([])
  const { data, reload } = useData((s) => call<{ approvals: Approval[] }>('approval_list', { status: 'pending' }, s), [results], ['approval.'])
  const decide = async (a: Approval, decision: string) => {
    try {
      const { outcome } = await call<{ outcome?: unknown }>('approval_decide', { approval_id: a.approval_id, decision, plan: a.plan_digest })
      setDecided((list) => [...list, { ...a, status: decision === 'allow' ? 'allowed' : 'denied', outcome }])
    } catch (e) {
      notify('bad', (e as Error).message)
    }
    reload() // if the plan has changed, it is shown anew
  }
  const isOurs = (a: Approval) => results.includes(a.approval_id) || (since !== undefined && Date.parse(a.created_at) >= Date.parse(since))
  const waiting = (data?.approvals ?? []).filter((a) => isOurs(a) && !decided.some((d) => d.approval_id === a.approval_id))
  return (
    <>
      {decided.map((a) => (
        <article class="card" key={a.approval_id} aria-label={`decision about ${a.subject}`}>
          <h3><code>{a.subject}</code> <State state={a.status} /></h3>
          {a.outcome !== undefined && <Json value={a.outcome} />}
        </article>
      ))}
      {waiting.map((a) => (
        <article class="card approval" key={a.approval_id} aria-label={`approval of ${a.subject}`}>
          <h3>Allow <code>{a.subject}</code>?</h3>
          <Plan steps={a.plan} />
          <div class="row">
            <button type="button" class="main" onClick={() => void decide(a, 'allow')}>Allow</button>
            <button type="button" onClick={() => void decide(a, 'deny')}>Deny</button>
            <a href="#/approvals">All approvals</a>
          </div>
        </article>
      ))}
    </>
  )
}
