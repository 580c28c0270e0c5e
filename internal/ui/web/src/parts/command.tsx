import { Copy } from './copy'

/** A command or snippet to copy. */
export function Command({ text }: { text: string }) {
  return <div class="copied"><pre>{text}</pre><Copy text={text}>Copy</Copy></div>
}
