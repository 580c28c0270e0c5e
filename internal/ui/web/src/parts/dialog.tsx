// A dialog over the page. It is open as long as it is shown; Escape closes it.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface Props {
  title: string
  plain?: boolean // without the title as a heading
  wide?: boolean
  stays?: () => boolean // whether Escape does not close it
  close: () => void
  children: ComponentChildren
}

export function Dialog({ title, plain, wide, stays, close, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  const press = (e: KeyboardEvent) => {
    if (e.key === 'Escape' && stays?.()) e.preventDefault()
  }
  return <dialog ref={dialog} class={wide ? 'wider' : ''} aria-label={title} onClose={close} onCancel={(e) => stays?.() && e.preventDefault()} onKeyDown={press}>{!plain && <h2>{title}</h2>}{children}</dialog>
}
