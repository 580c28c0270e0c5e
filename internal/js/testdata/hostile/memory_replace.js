// ends: limit_exceeded,script_error
'x'.repeat(1e5).replace(/x/g, 'y'.repeat(1e5))
