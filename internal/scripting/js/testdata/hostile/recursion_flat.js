// ends: script_error,limit_exceeded,timeout
let a = []; a.push(a); a.flat(Infinity)
