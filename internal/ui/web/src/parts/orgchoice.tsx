// The choice of the organisation in which somebody acts who is in several.
import { chooseOrg, me } from '../api'
import { attempt } from '../upstream'

export const orgName = (org: string) => org || 'none: the server itself'

export function OrgChoice({ id }: { id?: string }) {
  return <select id={id} value={me.value?.org ?? ''} onChange={(e) => void attempt(() => chooseOrg(e.currentTarget.value))}>{me.value?.orgs?.map((o) => <option key={o} value={o}>{orgName(o)}</option>)}</select>
}
