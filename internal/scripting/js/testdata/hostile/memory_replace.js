// ends: limit_exceeded
'x'.repeat(1e5).replace(/x/g, 'y'.repeat(1e5))
