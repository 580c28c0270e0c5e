// ends: limit_exceeded,timeout
const o = {}; for (let i = 0; ; i++) o['k' + i] = Symbol(i)
