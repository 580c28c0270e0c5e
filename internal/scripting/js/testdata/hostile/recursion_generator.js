// ends: script_error,limit_exceeded
function* g() { yield* g() }
[...g()]
