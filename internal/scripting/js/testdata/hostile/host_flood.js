// ends: limit_exceeded,script_error
for (;;) await mcp.a.b()
