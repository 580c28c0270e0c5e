// ends: timeout,limit_exceeded
for (;;) Promise.reject(new Error('x'))
