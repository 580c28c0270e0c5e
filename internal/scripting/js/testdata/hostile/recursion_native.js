// ends: script_error,limit_exceeded,timeout
let a = []; for (let i = 0; i < 1e5; i++) a = [a];
JSON.stringify(a)
