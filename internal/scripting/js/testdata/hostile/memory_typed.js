// ends: limit_exceeded,script_error
new Float64Array(2 ** 31)
