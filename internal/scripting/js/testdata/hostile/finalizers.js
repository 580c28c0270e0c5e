// ends: timeout,limit_exceeded
const r = new FinalizationRegistry(() => {}); for (;;) r.register({}, 1)
