// A person, and their roles in each organisation.
export interface Person {
  id: string
  name: string
  email?: string
  created: string
  seen: string
  blocked?: string
  memberships?: { org: string; roles?: string[]; source: string }[]
}

/** The roles of a person in each organisation; an empty one is the server itself. `plain` leaves out its name. */
export function Memberships({ of: p, plain }: { of: Person; plain?: boolean }) {
  const list = p.memberships ?? []
  if (list.length === 0) return <span class="soft">none</span>
  return <>{list.map((m) => <div key={m.org}>{m.org && !plain && <b>{m.org} </b>}{(m.roles ?? []).map((r) => <span key={r} class="kind">{r}</span>)}</div>)}</>
}
