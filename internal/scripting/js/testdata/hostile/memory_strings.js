// ends: limit_exceeded,script_error
let s = 'x'; for (;;) s += s
