// ends: timeout
mcp.a.hang(); 1
