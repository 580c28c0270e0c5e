// ends: script_error
throw new Proxy({}, {get() { throw 1 }})
