import { describe } from '../describe'
import type { ServerEvent } from '../events'
import { clock } from '../format'

/** Events as lines, each with its time and type. */
export function Lines({ events }: { events: ServerEvent[] }) {
  return (
    <table class="feed">
      <tbody>
        {events.map((e) => {
          const line = describe(e)
          return (
            <tr key={e.seq}>
              <td class="soft num">{clock(e.time)}</td>
              <td class="soft">{e.type}{e.node && <span class="tag at" title="the node that published it">{e.node}</span>}</td>
              <td class={line.kind}>{line.href ? <a href={line.href}>{line.text}</a> : line.text}</td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
