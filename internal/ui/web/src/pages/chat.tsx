import { useEffect, useRef, useState } from 'preact/hooks'
import { Approvals } from '../chat/approvals'
import { Composer, edited } from '../chat/composer'
import { changes, copy, load, loadList, loadModel, newID, remove, send, stop, turnsOf, type Attachment, type Summary, type Turn } from '../chat/conversation'
import { SetUp } from '../chat/setup'
import { Exchange } from '../chat/turn'
import { ago } from '../format'
import { deferred, notify } from '../parts/notices'
import { SharedMark, ShareButton } from '../parts/share'
import { useData } from '../resource'
import { go } from '../route'
import { isPermitted } from '../shares'
import { Icon } from '../shell/icon'
import { attempt } from '../upstream'
import { Skeleton } from '../parts/skeleton'

/** The name in the address of messages that belong to no conversation. */
const unnamed = '-'
const addressOf = (id: string) => `chat/${encodeURIComponent(id || unnamed)}`

/** Conversations with the agent. Without a name in the address it is a new one. */
export function Chat({ rest }: { rest: string }) {
  const [fresh, setFresh] = useState(newID)
  const id = rest === unnamed ? '' : rest || fresh
  const { data: model, reload: again } = useData(loadModel, [], ['config.'])
  const turns = turnsOf(id)
  const stored = useData((s) => (rest ? load(id, s) : Promise.resolve()), [id, rest])
  const list = turns.value ?? []
  const running = list.find((t) => t.busy)
  const all = useData(loadList, [changes.value], ['chat.turn_finished', 'share.'])
  const current = all.data?.find((c) => rest && c.id === id)
  const say = (text: string, files: Attachment[], name: string, key?: string) => {
    void send(id, text, files, name, key)
    if (!rest) {
      go(addressOf(id))
      setFresh(newID())
    }
  }
  return (
    <div class="chat">
      <Conversations {...all} current={rest ? id : undefined} />
      <section class="talk" aria-label="Conversation">
        {current && <div class="row"><ShareButton kind="conversation" id={id} name={current.title} of={current} /></div>}
        <Log turns={list}>
          {stored.error && <p class="bad">{stored.error.message}</p>}
          {list.length === 0 && (rest && turns.value === undefined && !stored.error ? <Skeleton /> : model && !model.configured ? <SetUp problem={model.problem} done={again} /> : <Welcome ask={(text) => say(text, [], '')} ready={model?.configured === true} />)}
          {list.map((t) => <Exchange key={t.key} turn={t} retry={mayRetry(t) && !current?.shared && !running ? () => say(t.question, t.files, '', t.error ? t.key : undefined) : undefined} edit={!current?.shared && !running ? () => edited.value = t.question : undefined} />)}
          {!current?.shared && <Approvals key={id} results={list.flatMap((t) => t.pieces).map((p) => p.call?.result ?? '').join('\n')} since={running?.began} />}
        </Log>
        {current?.shared ? <Foreign conversation={current} /> : <Composer key={id} draft={`chat.draft.${rest ? id : ''}`} model={model} busy={running !== undefined} send={say} stop={() => running && void stop(running).catch((e: Error) => notify('bad', e.message))} />}
      </section>
    </div>
  )
}

/** In place of the composer, where somebody else's conversation ends: nobody writes in it. */
function Foreign({ conversation: c }: { conversation: Summary }) {
  return (
    <div class="row spread composer">
      <SharedMark kind="conversation" of={c} />
      {isPermitted(c, 'use') && <button type="button" class="main" onClick={() => void attempt(async () => go(addressOf(await copy(c.id))))}>Copy to go on</button>}
    </div>
  )
}

/** A stored message with attachments cannot be sent again: the page does not have them. */
const mayRetry = (t: Turn) => t.attached.length === t.files.length

/** The messages. It follows the end of an answer, unless the reader has scrolled up. */
function Log({ turns, children }: { turns: Turn[]; children: preact.ComponentChildren }) {
  const end = useRef<HTMLDivElement>(null)
  const count = useRef(0)
  useEffect(() => {
    const below = document.documentElement.scrollHeight - scrollY - innerHeight
    if (turns.length !== count.current || below < 200) end.current?.scrollIntoView({ block: 'end' })
    count.current = turns.length
  }, [turns])
  return <div class="log" role="log" aria-live="polite" aria-label="Messages">{children}<div ref={end} class="logend" /></div>
}

const ideas = ['What can you do here?', 'Which servers and tools are connected?', 'Write a script that finds the slowest tool of the last hour.']

function Welcome({ ask, ready }: { ask: (text: string) => void; ready: boolean }) {
  return (
    <div class="welcome">
      <h2>What shall we do?</h2>
      <p class="soft">The agent can use every connected tool, and write scripts. What changes something waits for your approval where the policy says so.</p>
      {ready && <div class="row">{ideas.map((text) => <button key={text} type="button" onClick={() => ask(text)}>{text}</button>)}</div>}
    </div>
  )
}

function Conversations({ current, data, error, reload }: { current?: string; data?: Summary[]; error?: Error; reload: () => void }) {
  const [shown, setShown] = useState(false)
  const [find, setFind] = useState('')
  const [gone, setGone] = useState<string[]>([])
  const forget = (c: Summary) => {
    setGone((all) => [...all, c.id])
    if (c.id === current) go('chat')
    deferred(`“${c.title || 'untitled'}” was deleted`, () => void attempt(() => remove(c.id)).then(reload), () => setGone((all) => all.filter((id) => id !== c.id)))
  }
  const matching = (data ?? []).filter((c) => !gone.includes(c.id) && c.title.toLowerCase().includes(find.toLowerCase()))
  return (
    <aside class={`conversations${shown ? ' open' : ''}`} aria-label="Conversations">
      <div class="row">
        <a class="button main" href="#/chat" onClick={() => setShown(false)}><Icon name="add" />New chat</a>
        <button type="button" class="toggle" aria-expanded={shown} onClick={() => setShown(!shown)}>Conversations{data && ` (${data.length})`}</button>
      </div>
      <div class="all">
        {data && data.length > 6 && <><label class="hidden" for="find-conversation">Find a conversation</label><input id="find-conversation" type="search" placeholder="Find" value={find} onInput={(e) => setFind(e.currentTarget.value)} /></>}
        {error && <p class="bad">{error.message}</p>}
        {data?.length === 0 && <p class="soft small">Your conversations are listed here.</p>}
        <ul>
          {matching.map((c) => (
            <li key={c.id}>
              <a href={`#/${addressOf(c.id)}`} aria-current={c.id === current ? 'page' : undefined} onClick={() => setShown(false)}>
                <span class="oneline">{c.busy && <span class="spinner" />}{c.title || 'untitled'}</span>
                <span class="soft small">{c.owner && `${c.owner}, `}{ago(c.updated_at)}</span>
              </a>
              {!c.shared && <button type="button" class="plain" aria-label={`Delete ${c.title}`} title="Delete" onClick={() => forget(c)}>×</button>}
            </li>
          ))}
        </ul>
      </div>
    </aside>
  )
}
