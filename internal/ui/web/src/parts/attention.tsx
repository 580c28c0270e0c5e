// What a person should look at, each with the action that mends it.
import { may } from '../api'
import { deedOf, scriptOf } from '../deed'
import { ago, count, firstLine } from '../format'
import { retry, type Upstream } from '../upstream'
import { waiting } from '../waiting'
import { Hint } from './hint'
import { State } from './state'
import { UpstreamLogin } from './upstreamlogin'

const troubled = new Set(['failed', 'needs_auth', 'untrusted', 'reconnecting'])

export function Attention({ servers }: { servers: Upstream[] }) {
  const bad = servers.filter((u) => u.wanted !== false && (troubled.has(u.state) || u.refusing_ms !== undefined))
  const { approvals, definitions, logins } = waiting.value ?? { approvals: [], definitions: 0, logins: [] }
  const nothing = approvals.length + bad.length + definitions + logins.length === 0
  if (nothing) return null
  return (
    <section class="panel attention" aria-label="Needs attention">
      <h2>Needs you</h2>
      {approvals.slice(0, 5).map((a) => (
        <article key={a.approval_id} aria-label={`approval of ${a.script || a.subject}`}>
          <div><b>{deedOf(a.subject, a.plan)}</b>{a.plan.length > 1 && ` and ${count(a.plan.length - 1, 'more change')}`}<span class="second">asked by {a.script === a.subject ? 'an agent' : scriptOf(a)}, {ago(a.created_at)}, <code>{a.subject}</code></span></div>
          <a class="button" href={`#/approvals/${a.approval_id}`}>Review</a>
        </article>
      ))}
      {approvals.length > 5 && <p><a href="#/approvals">{approvals.length - 5} more approvals</a></p>}
      {logins.map((l) => (
        <article key={l.upstream} aria-label={`login to ${l.upstream}`}>
          <div><State state="needs_login" /> <a class="name" href={`#/servers/${encodeURIComponent(l.upstream)}`}>{l.upstream}</a> {l.state === 'none' ? 'is used with your own account there' : 'ended your login'}</div>
          <a class="button" href={l.connect}>Log in to {l.upstream}</a>
        </article>
      ))}
      {bad.map((u) => <Server key={u.namespace} upstream={u} />)}
      {definitions > 0 && <article aria-label="definitions"><div><State state="changed" /> {count(definitions, 'definition')} of tools await review</div><a class="button" href="#/approvals">Compare</a></article>}
    </section>
  )
}

function Server({ upstream: u }: { upstream: Upstream }) {
  return (
    <article aria-label={`server ${u.namespace}`}>
      <div><State state={u.state} /> <a class="name" href={`#/servers/${encodeURIComponent(u.namespace)}`}>{u.namespace}</a>{(u.attempt ?? 0) > 1 && <span class="soft"> after {count(u.attempt!, 'attempt')}</span>}</div>
      {u.error && <div class="bad small brief">{firstLine(u.error)}</div>}
      {u.hint && <Hint>{u.hint}</Hint>}
      {u.login ? <UpstreamLogin name={u.namespace} address={u.login} /> : may('admin') && <button type="button" onClick={() => void retry(u)}>Retry now</button>}
    </article>
  )
}

