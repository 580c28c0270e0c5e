// ends: script_error
async function f() { await f() }
await f()
