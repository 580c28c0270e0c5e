// ends: script_error,limit_exceeded
const s = 'x'.repeat(6e6); await Promise.all([1, 2, 3, 4].map(() => mcp.a.hang(s)))
