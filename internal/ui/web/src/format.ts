// Formats times, sizes and durations.

export function duration(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const minutes = Math.floor(ms / 60_000), seconds = Math.floor(ms / 1000) % 60
  if (minutes < 10 && seconds > 0) return `${minutes} min ${seconds} s`
  if (minutes < 60) return `${minutes} min`
  return minutes % 60 > 0 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`
}

const hours = new Intl.DateTimeFormat('sv', { timeStyle: 'medium' }) // 09:05:00 everywhere; one for all: to make it is slow

export function clock(time: string | number | Date): string {
  return hours.format(new Date(time))
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] // not Intl's: "Sept" in some places

/** The day: 18 Nov, with the year if it is another one. */
export function day(time: string | number | Date, now = new Date()): string {
  const t = new Date(time)
  return `${t.getDate()} ${months[t.getMonth()]}${t.getFullYear() === now.getFullYear() ? '' : ` ${t.getFullYear()}`}`
}

/** The exact time, for details. */
export function moment(time: string | number | Date): string {
  return `${day(time, new Date(0))}, ${clock(time)}`
}

/** The time of day without its seconds if it is today, otherwise after the day. */
export function when(time: string | number | Date, now = new Date()): string {
  const t = new Date(time), hour = clock(t).slice(0, 5)
  return t.toDateString() === now.toDateString() ? hour : `${day(t, now)}, ${hour}`
}

/** A time to come or gone: how long from now for two days, otherwise the day. */
export function until(time: string | number | Date, now = Date.now()): string {
  const ms = new Date(time).getTime() - now
  if (Math.abs(ms) > 2 * 86_400_000) return `on ${when(time, new Date(now))}`
  return ms < 0 ? ago(time, now) : `in ${duration(ms)}`
}

export function ago(time: string | number | Date, now = Date.now()): string {
  const ms = now - new Date(time).getTime()
  return ms < 2000 ? 'now' : `${duration(ms)} ago`
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`
}

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`
}

/** The message of an error, without its stack. */
export function firstLine(message: string): string {
  const lines = message.split('\n').filter(Boolean)
  return (lines.find((l) => l.startsWith('Error: ')) ?? lines[0] ?? '').replace(/^Error: /, '')
}
