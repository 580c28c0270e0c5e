// ends: timeout,limit_exceeded
const a = []; a[2 ** 32 - 2] = 1; a.sort()
