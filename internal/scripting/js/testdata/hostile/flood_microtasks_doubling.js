// ends: timeout,limit_exceeded
const f = () => { queueMicrotask(f); queueMicrotask(f) }; f()
