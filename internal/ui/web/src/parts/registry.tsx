// The search in the MCP registry, and the form for what a server of it needs.
import { useEffect, useState } from 'preact/hooks'
import { useData } from '../resource'
import { addListed, searchRegistry, type Listing, type Need } from '../setup'
import { useAttempt } from './fields'
import { Hint } from './hint'

/** How long typing must pause before the registry is asked, in milliseconds. */
const pause = 400

export function RegistrySearch({ done, programs }: { done: () => void; programs: boolean }) {
  const [words, setWords] = useState('')
  const [asked, setAsked] = useState('')
  const [chosen, setChosen] = useState<Listing>()
  useEffect(() => {
    const timer = setTimeout(() => setAsked(words.trim()), pause)
    return () => clearTimeout(timer)
  }, [words])
  const found = useData((s) => (asked.length < 3 ? Promise.resolve(undefined) : searchRegistry(asked, s)), [asked])
  if (chosen) return <AddListed listing={chosen} done={done} back={() => setChosen(undefined)} />
  return (
    <>
      <label for="registry-words">Words in the name, such as github, postgres or browser</label>
      <input id="registry-words" type="search" class="wide" value={words} onInput={(e) => setWords(e.currentTarget.value)} />
      {found.error && <p class="bad" role="alert">{found.error.message}</p>}
      <p class="soft" role="status">{asked.length >= 3 && !found.data && !found.error ? 'asking the registry…' : found.data && `${found.data.servers.length} of ${found.data.total}`}</p>
      <ul class="list" aria-label="Servers of the registry">
        {found.data?.servers.map((l) => (
          <li key={l.name} class="row spread">
            <div class="grow"><b>{l.title || l.name}</b> <span class="soft small">{l.name} {l.version}</span>{l.status && <span class="tag at warn">{l.status}</span>}<div>{l.description}</div><div class="mono soft small breaks">{l.runs ?? l.problem}</div></div>
            {!l.problem && (programs || !l.program) && <button type="button" onClick={() => setChosen(l)}>Add</button>}
          </li>
        ))}
      </ul>
    </>
  )
}

function AddListed({ listing: l, done, back }: { listing: Listing; done: () => void; back: () => void }) {
  const [name, setName] = useState(l.namespace)
  const [values, setValues] = useState<Record<string, Record<string, string>>>({})
  const { busy, failure, attempt } = useAttempt(done)
  const set = (n: Need, value: string) => setValues({ ...values, [n.kind]: { ...values[n.kind], [n.name]: value } })
  return (
    <form onSubmit={(e) => { e.preventDefault(); attempt(async () => `${await addListed(l.name, name, values)} added, connecting`) }}>
      <p><b>{l.title || l.name}</b> {l.version}</p>
      <p>{l.description}</p>
      <p>{l.program ? 'It is started on this machine, with your rights:' : 'It is reached at:'} <code class="breaks">{l.runs}</code></p>
      <label for="listed-name">Name</label><input id="listed-name" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
      {l.needs.map((n) => (
        <label key={`${n.kind} ${n.name}`}><code>{n.name}</code>{n.required && ' (required)'} <span class="soft">{n.description}</span>
          {n.choices ? <select required={n.required} onChange={(e) => set(n, e.currentTarget.value)}><option value="">…</option>{n.choices.map((c) => <option key={c}>{c}</option>)}</select>
            : <input type={n.secret ? 'password' : 'text'} autocomplete="off" required={n.required && !n.default} placeholder={n.default} onInput={(e) => set(n, e.currentTarget.value)} />}
        </label>
      ))}
      {l.needs.some((n) => n.secret) && <Hint>Secrets are stored in files that only you can read.</Hint>}
      {failure && <p class="bad" role="alert">{failure}</p>}
      <div class="row actions"><button class="main" type="submit" disabled={busy}>Connect</button><button type="button" onClick={back}>Back</button></div>
    </form>
  )
}
