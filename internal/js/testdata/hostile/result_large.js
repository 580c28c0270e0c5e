// ends: limit_exceeded
'x'.repeat(5e6)
