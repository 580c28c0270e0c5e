// ends: timeout
const f = () => queueMicrotask(f); f()
