// ends: timeout
await mcp.a.hang()
