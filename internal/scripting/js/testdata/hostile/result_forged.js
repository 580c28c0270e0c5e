// ends: timeout
Object.defineProperty(globalThis, '__result__', {get() { for (;;) {} }}); __result__
