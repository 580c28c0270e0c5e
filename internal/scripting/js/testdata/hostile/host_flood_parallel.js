// ends: script_error,limit_exceeded
const all = []; for (let i = 0; i < 2000; i++) all.push(mcp.a.b(i));
await Promise.all(all)
