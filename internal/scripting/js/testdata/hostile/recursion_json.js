// ends: script_error,limit_exceeded
JSON.parse('['.repeat(1e6))
