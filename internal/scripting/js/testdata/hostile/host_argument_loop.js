// ends: timeout
mcp.a.b({toJSON() { for (;;) {} }})
