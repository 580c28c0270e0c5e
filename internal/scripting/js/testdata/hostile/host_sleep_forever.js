// ends: timeout
await sleep(1e15)
