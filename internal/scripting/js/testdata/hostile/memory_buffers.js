// ends: limit_exceeded,script_error
const a = []; for (;;) a.push(new ArrayBuffer(1e7))
