// ends: script_error
function f() { return f() + 1 }
f()
