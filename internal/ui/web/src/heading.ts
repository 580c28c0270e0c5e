// The title of what a page shows: the page's own, or the name of one thing with the way back.
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'

export interface Heading {
  title: string
  back?: { title: string; href: string }
}

/** Undefined while the page itself is the title. */
export const heading = signal<Heading | undefined>(undefined)

/** Names what the component shows while it is shown; no title while it is not known. */
export function useHeading(title: string | undefined, back?: Heading['back']): void {
  useLayoutEffect(() => {
    heading.value = title ? { title, back } : undefined
    return () => { heading.value = undefined }
  }, [title, back?.title, back?.href])
}
