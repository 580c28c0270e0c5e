// ends: timeout
const a = Array.from({length: 1e6}, (_, i) => i); for (;;) a.sort(() => 1)
