// ends: timeout,limit_exceeded
new Array(2 ** 32 - 1).join('')
