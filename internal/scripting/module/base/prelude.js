(function (globals, { __print: say, inspect }) {
  const line = (values) => values.map((v) => inspect(v)).join('\t');
  const define = (name, value) => Object.defineProperty(globals, name, { value, writable: true, configurable: true });

  define('print', function print(...values) { say('stdout', line(values)); });
  define('eprint', function eprint(...values) { say('stderr', line(values)); });
  define('repr', function repr(value) { return typeof value === 'string' ? JSON.stringify(value) : inspect(value, 16); });
})
