// ends: timeout,limit_exceeded
JSON.stringify(new Array(2 ** 32 - 1))
