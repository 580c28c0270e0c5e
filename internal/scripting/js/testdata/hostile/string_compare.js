// ends: timeout
const s = 'x'.repeat(1e6); for (;;) s.localeCompare(s + 'y')
