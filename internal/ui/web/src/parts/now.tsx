// Times that move while they are shown.
import { useEffect, useState } from 'preact/hooks'
import { duration } from '../format'

/** The time, updated every second. */
function useNow(): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}

/** The time until a moment. */
export function Until({ time }: { time: number }) {
  const now = useNow()
  return <>{time > now ? `in ${duration(time - now)}` : 'now'}</>
}

/** The seconds since a moment. */
export function Since({ time }: { time: number }) {
  return <>{Math.round((useNow() - time) / 1000)} s</>
}
