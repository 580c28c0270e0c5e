// Formats times, sizes and durations.

export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const minutes = Math.floor(ms / 60_000)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

const hours = new Intl.DateTimeFormat('sv', { timeStyle: 'medium' }) // 09:05:00 everywhere; one for all: to make it is slow

export function clock(time: string | number | Date): string {
  return hours.format(new Date(time))
}

const days = new Intl.DateTimeFormat('sv') // 2026-11-19, as commands print it

export function day(time: string | number | Date): string {
  return days.format(new Date(time))
}

export function moment(time: string | number | Date): string {
  return `${day(time)} ${clock(time)}`
}

/** The time of day, after the date if it is not today. */
export function when(time: string | number | Date, now = new Date()): string {
  return day(time) === day(now) ? clock(time) : moment(time)
}

export function ago(time: string | number | Date, now = Date.now()): string {
  const ms = now - new Date(time).getTime()
  return ms < 2000 ? 'now' : `${duration(ms)} ago`
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`
}

/** The message of an error, without its stack. */
export function firstLine(message: string): string {
  const lines = message.split('\n').filter(Boolean)
  return (lines.find((l) => l.startsWith('Error: ')) ?? lines[0] ?? '').replace(/^Error: /, '')
}
