// A schedule in words, for the forms that people use. Others are only shown as they are written.
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const names: Record<string, string> = { '@hourly': 'every hour', '@daily': 'every day at 00:00', '@midnight': 'every day at 00:00', '@weekly': 'on Sundays at 00:00', '@monthly': 'on the 1st of each month at 00:00', '@yearly': 'on 1 Jan at 00:00', '@annually': 'on 1 Jan at 00:00' }

export function inWords(schedule: string): string | undefined {
  const text = schedule.trim()
  if (names[text]) return names[text]
  const each = /^@every (\S+)$/.exec(text)
  if (each) return `every ${each[1].replace(/(\d+)h/, '$1 h ').replace(/(\d+)m(?!s)/, '$1 min ').replace(/(\d+)s/, '$1 s').trim()}`
  const [minute, hour, date, month, day, ...more] = text.split(/\s+/)
  if (day === undefined || more.length > 0 || month !== '*') return undefined
  const everyMinute = /^(?:\*|\*\/(\d+))$/.exec(minute)
  if (everyMinute && hour === '*' && date === '*' && day === '*') return everyMinute[1] && everyMinute[1] !== '1' ? `every ${everyMinute[1]} minutes` : 'every minute'
  if (!/^\d+$/.test(minute)) return undefined
  if (hour === '*' && date === '*' && day === '*') return minute === '0' ? 'every hour' : `every hour at ${minute} min past`
  if (!/^\d+$/.test(hour)) return undefined
  const at = `at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`
  if (/^\d+$/.test(date) && day === '*') return `on the ${ordinal(Number(date))} of each month ${at}`
  if (date !== '*') return undefined
  const when = daysOf(day)
  return when && `${when} ${at}`
}

function daysOf(day: string): string | undefined {
  const known: Record<string, string> = { '*': 'every day', '1-5': 'on weekdays', 'mon-fri': 'on weekdays', '0,6': 'on weekends', '6,0': 'on weekends' }
  const name = known[day.toLowerCase()]
  if (name) return name
  const listed = day.split(',').map((d) => (/^[0-7]$/.test(d) ? days[Number(d) % 7] : days.find((n) => n.slice(0, 3).toLowerCase() === d.toLowerCase())))
  return listed.every(Boolean) ? `on ${listed.map((d) => `${d}s`).join(' and ')}` : undefined
}

function ordinal(n: number): string {
  const end = n % 100 > 10 && n % 100 < 14 ? 'th' : ['th', 'st', 'nd', 'rd'][n % 10] ?? 'th'
  return `${n}${end}`
}
