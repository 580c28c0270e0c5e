// ends: script_error,limit_exceeded
new RegExp('('.repeat(1e5) + ')'.repeat(1e5))
