// ends: timeout
for (const x of new Array(2 ** 32 - 1)) {}
