// ends: timeout
Array.prototype.reduce.call({length: 2 ** 53 - 1, 0: 1}, (a) => a)
