// How much of a limit is used.
interface Props {
  name: string
  used: number
  limit: number
  show?: (n: number) => string
}

export function Quota({ name, used, limit, show = (n) => n.toLocaleString() }: Props) {
  const share = limit > 0 ? used / limit : 0
  return (
    <div class="budget">
      <span>{name}</span>
      <meter min={0} max={1} low={0.75} high={0.95} optimum={0} value={Math.min(share, 1)} aria-label={`${name}: ${Math.round(share * 100)} % used`} />
      <span class={share >= 1 ? 'bad' : 'soft'}>{show(used)} of {show(limit)}</span>
    </div>
  )
}
