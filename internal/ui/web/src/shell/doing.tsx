// The forms of what was chosen in the palette: run a tool or a script, connect a server.
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { call } from '../mcp'
import { AddServer } from '../parts/connect'
import { StartJob } from '../parts/startjob'
import { Try } from '../parts/tool'
import { useData } from '../resource'
import { go } from '../route'
import type { Definition } from '../tools'
import type { Step } from './palette'
import { Skeleton } from '../parts/skeleton'

/** The form of what was chosen. */
export function Doing({ step, back, close }: { step: Step; back: () => void; close: () => void }) {
  if (step.tool) return <Frame title={step.tool} href={`#/tools/${encodeURIComponent(step.tool)}`} back={back} close={close}><RunTool name={step.tool} /></Frame>
  if (step.script) return <Frame title={step.script.name} href={`#/scripts/${step.script.hash}`} back={back} close={close}><StartJob hash={step.script.hash} started={close} /></Frame>
  return <Frame title="Connect a server" href="#/servers" back={back} close={close}><AddServer way={step.connect!.way} given={step.connect!.text} done={() => { close(); go('servers') }} cancel={close} /></Frame>
}

function Frame({ title, href, back, close, children }: { title: string; href: string; back: () => void; close: () => void; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <div class="row title"><h2>{title}</h2><span class="row"><button type="button" onClick={back}>Back</button><a class="button" href={href} onClick={close}>Open its page</a></span></div>
      {children}
    </section>
  )
}

function RunTool({ name }: { name: string }) {
  const { data, error } = useData((s) => call<{ tools: Definition[] }>('get_tool_definitions', { names: [name] }, s), [name])
  const tool = data?.tools[0]
  useEffect(() => document.querySelector<HTMLElement>('.palette form :is(textarea, input, select, button.main)')?.focus(), [tool === undefined])
  if (error) return <p class="bad">{error.message}</p>
  return tool ? <><p class="soft prose brief">{tool.description}</p><Try tool={tool} /></> : <Skeleton />
}
