// ends: timeout
const s = 'x'.repeat(1e6); for (;;) console.log(s, s, s)
