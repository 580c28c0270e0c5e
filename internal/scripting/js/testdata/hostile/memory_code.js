// ends: limit_exceeded,script_error,timeout
let s = 'let a0 = 0;'; for (let i = 1; i < 1e6; i++) s += `let a${i} = ${i};`;
(0, eval)(s)
