// ends: timeout
await {then(resolve) { resolve(this) }}
