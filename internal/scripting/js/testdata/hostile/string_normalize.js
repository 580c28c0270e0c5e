// ends: timeout,limit_exceeded,script_error
const s = '\u0344'.repeat(1e5); for (;;) s.normalize('NFKD')
