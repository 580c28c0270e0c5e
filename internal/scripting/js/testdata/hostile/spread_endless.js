// ends: timeout,limit_exceeded,script_error
Math.max(...{[Symbol.iterator]() { return {next: () => ({done: false, value: 1})} }})
