// ends: limit_exceeded
'x'.repeat(12e6)
