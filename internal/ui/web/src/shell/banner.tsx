// Says that the server cannot be reached, until it can.
import { useEffect, useState } from 'preact/hooks'
import { may } from '../api'
import { online } from '../events'

/** How long the stream may be away before people are told: a restart takes less. */
const patience = 1500

export function Banner() {
  const [gone, setGone] = useState(false)
  const away = may('read') && !online.value
  useEffect(() => {
    if (!away) {
      setGone(false)
      return
    }
    const timer = setTimeout(() => setGone(true), patience)
    return () => clearTimeout(timer)
  }, [away])
  return gone ? <p class="banner" role="alert">The server cannot be reached. What you see may be old; the page reconnects by itself.</p> : null
}
