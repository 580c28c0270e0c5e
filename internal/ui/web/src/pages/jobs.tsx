import { Compare } from '../jobs/compare'
import { AllJobs } from '../jobs/list'
import { OneJob } from '../jobs/one'

/** All jobs, one of them, or two side by side: the address names them. */
export function Jobs({ rest }: { rest: string }) {
  const [id, other] = rest.split('/')
  if (other) return <Compare one={id} other={other} />
  return id ? <OneJob key={id} id={id} /> : <AllJobs />
}
