// ends: limit_exceeded,script_error
'x'.repeat(2 ** 30).repeat(2 ** 30)
