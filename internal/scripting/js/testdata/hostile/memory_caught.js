// ends: timeout
const a = []; for (;;) { try { a.push('x'.repeat(1e6) + a.length) } catch {} }
