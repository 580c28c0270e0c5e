// ends: limit_exceeded,timeout,script_error
let n = 2n; for (;;) n *= n
