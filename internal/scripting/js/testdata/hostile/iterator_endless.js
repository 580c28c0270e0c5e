// ends: timeout,limit_exceeded
Array.from({[Symbol.iterator]() { return {next: () => ({done: false, value: 1})} }})
