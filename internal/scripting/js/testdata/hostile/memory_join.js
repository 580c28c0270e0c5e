// ends: limit_exceeded,script_error
const a = new Array(1e6).fill('x'.repeat(1e4)); a.join()
