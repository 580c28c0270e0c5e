// ends: timeout
new Proxy({}, {ownKeys() { for (;;) {} }})
