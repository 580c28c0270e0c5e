// ends: script_error,limit_exceeded
eval('('.repeat(1e6))
