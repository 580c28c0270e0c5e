// ends: timeout,limit_exceeded
const a = []; a.length = 2 ** 32 - 1; a.splice(0, 1)
