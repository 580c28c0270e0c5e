// ends: script_error
let a = 1; for (let i = 0; i < 10_500; i++) a = {a}; await mcp.a.b(a)
