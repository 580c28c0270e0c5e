// One message and its answer.
import { Fragment } from 'preact'
import { duration, size } from '../format'
import { Copy } from '../parts/copy'
import { Json } from '../parts/json'
import { Markdown } from '../parts/markdown'
import { Icon } from '../shell/icon'
import type { Call, Media, Piece, Turn, Usage } from './conversation'
import { urlOf } from '../api'

export function Exchange({ turn: t, retry, edit }: { turn: Turn; retry?: () => void; edit?: () => void }) {
  const text = t.pieces.map((p) => p.text).filter(Boolean).join('\n\n')
  return (
    <article class="exchange" aria-label={`message: ${t.question.slice(0, 60)}`} aria-busy={t.busy}>
      <div class="question">
        {t.attached.map((m) => <Shown key={m.id} media={m} />)}
        {t.question && <p class="prose">{t.question}</p>}
      </div>
      <div class="answer">
        {t.pieces.map((p, i) => (
          <Fragment key={i}>
            <Part piece={p} whole={!t.busy} trace={t.trace} />
            {t.media.filter((m) => placeOf(m, t.pieces) === i).map((m) => <Shown key={m.id} media={m} />)}
          </Fragment>
        ))}
        {t.busy && <p class="soft working" role="status"><span class="spinner" />{t.status || 'Working…'}</p>}
        {t.notices.map((n, i) => <p key={i} class={n.code === 'stopped' ? 'soft small' : 'warn small'}>{n.message}</p>)}
        {t.error && <p class="bad failure" role="alert">{t.error} {retry && <button type="button" onClick={retry}>Try again</button>}</p>}
        {!t.busy && (
          <p class="soft small row after">
            {text && <Copy text={text}>Copy</Copy>}
            {retry && !t.error && <button type="button" class="quiet" title="The same question again, below" onClick={retry}>Ask again</button>}
            {edit && t.question && <button type="button" class="quiet" title="Put the question into the field below" onClick={edit}>Edit</button>}
            {t.model && <span>{t.model}</span>}
            {t.took !== undefined && <span>{duration(t.took)}</span>}
            {t.usage && <a class="quiet" href="#/usage" title="All usage">{costOf(t.usage)}</a>}
            {t.trace && <a class="quiet" href={`#/traces/${t.trace}`}>Trace</a>}
          </p>
        )}
      </div>
    </article>
  )
}

/** The piece after which something is shown: the last call of its tool, otherwise the last piece. */
function placeOf(m: Media, pieces: Piece[]): number {
  const called = pieces.map((p) => p.call?.tool).lastIndexOf(m.tool ?? '')
  return called >= 0 ? called : pieces.length - 1
}

/** Tokens and cost in a few words. */
export function costOf(u: Usage): string {
  return `${u.input_tokens + (u.cache_read_input_tokens ?? 0)} tokens in, ${u.output_tokens} out, ${dollars(u.cost_usd)}`
}

/** An amount with cents, and a small one with two digits that are not zero. */
export function dollars(amount: number): string {
  return amount === 0 ? '$0' : `$${amount.toFixed(Math.max(2, 1 - Math.floor(Math.log10(amount))))}`
}

function Part({ piece: p, whole, trace }: { piece: Piece; whole: boolean; trace?: string }) {
  if (p.call) return <ToolCall call={p.call} whole={whole} trace={trace} />
  return <Markdown text={p.text ?? ''} whole={whole} />
}

function ToolCall({ call: c, whole, trace }: { call: Call; whole: boolean; trace?: string }) {
  const running = c.result === undefined && !whole
  return (
    <details class={`call${c.failed ? ' failed' : ''}`}>
      <summary>
        {running ? <span class="spinner" /> : <Icon name="tools" />}
        <code>{c.tool}</code>
        <span class="soft oneline">{brief(c.input)}</span>
        <span class="end soft">{running ? 'running' : c.failed ? <span class="bad">failed</span> : c.took !== undefined && duration(c.took)}</span>
      </summary>
      <h3>Arguments</h3>
      <Value value={c.input} />
      {c.result !== undefined && <><h3>Result</h3><Value value={parsed(c.result)} /></>}
      {trace && <p class="small"><a href={`#/traces/${trace}`}>Open trace</a></p>}
    </details>
  )
}

/** Code is shown as written, other values as a tree. */
function Value({ value }: { value: unknown }) {
  if (typeof value === 'string') return <pre tabIndex={0}>{value}</pre>
  const code = (value as { code?: unknown } | undefined)?.code
  if (typeof code === 'string' && Object.keys(value as object).length === 1) return <pre tabIndex={0}>{code}</pre>
  return <Json value={value} />
}

function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function brief(input: unknown): string {
  const text = typeof input === 'string' ? input : Object.entries((input as object | undefined) ?? {}).map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`).join(', ')
  return text.replaceAll(/\s+/g, ' ').slice(0, 200)
}

/** An image or a sound; other files can be downloaded. */
export function Shown({ media: m }: { media: Media }) {
  const name = m.name || (m.tool ? `from ${m.tool}` : 'file')
  if (/^image\/(png|jpeg|gif|webp)$/.test(m.mime_type)) return <figure><img class="shown" src={urlOf(m.url)} alt={name} /><figcaption class="soft small">{name}</figcaption></figure>
  if (m.mime_type.startsWith('audio/') && !m.mime_type.includes('midi')) return <figure><audio controls src={urlOf(m.url)} aria-label={name} /><figcaption class="soft small">{name}</figcaption></figure>
  return <p class="file"><a href={urlOf(m.url)} download={name}>{name}</a> <span class="soft">{m.mime_type}, {size(m.size)}</span></p>
}
