// ends: limit_exceeded,script_error
'x'.padEnd(2 ** 29, 'abc') + 'y'.padStart(2 ** 29)
