// ends: timeout,limit_exceeded
const [...x] = {*[Symbol.iterator]() { for (;;) yield 1 }}
