// Values are formatted as one line, as print does.
(function (log, host) {
  for (const level of ['debug', 'info', 'warn', 'error']) {
    const say = host[level];
    log[level] = { [level](...values) { say(values.map((v) => host.inspect(v)).join('\t')); } }[level];
  }
})
