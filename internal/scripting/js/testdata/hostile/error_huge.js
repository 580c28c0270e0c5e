// ends: script_error,limit_exceeded
throw new Error('x'.repeat(1e7))
