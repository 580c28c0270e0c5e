// Handlers are functions of the script, so they are stored here. The host only queues
// events until the script asks for them.
(function (events, { __want: want, __next: next, emit, inspect, placed }) {
  const { log, clock } = globalThis;
  const handlers = [];
  let stopped = false;

  const check = (value, kind, position, name) => {
    if (typeof value !== kind) {
      throw new TypeError('bad argument #' + position + " to '" + name + "' (" + kind + ' expected, got ' + typeof value + ')');
    }
  };

  // "artifact_created" means "artifact.created": the subject, then what happened.
  function patternOf(name) {
    if (!/[.*]/.test(name)) name = name.replace('_', '.');
    if (/\*./.test(name)) throw new TypeError("bad argument #1 to 'on' (a * can only stand at the end of '" + name + "')");
    return name;
  }

  const wants = ({ pattern }, type) => (pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type);

  function on(name, fn) {
    check(name, 'string', 1, 'on');
    check(fn, 'function', 2, 'on');
    const handler = { pattern: patternOf(name), fn };
    want(handler.pattern);
    handlers.push(handler);
    return () => {
      const at = handlers.indexOf(handler);
      if (at >= 0) handlers.splice(at, 1);
      return at >= 0;
    };
  }

  // Passes an event to all matching handlers, one after the other. Returns whether there was one.
  async function deliver(e) {
    const wanting = handlers.filter((handler) => wants(handler, e.type));
    for (const { pattern, fn } of wanting) {
      try {
        await fn(e);
      } catch (problem) {
        log.error("on('" + pattern + "'): " + (problem instanceof Error ? problem.message : inspect(problem)));
      }
    }
    return wanting.length > 0;
  }

  // Handles events until enough(count) or until the time is over. Without a time it waits forever.
  async function handle(timeout, name, enough) {
    if (timeout !== undefined) check(timeout, 'number', 1, name);
    const finish = timeout === undefined ? undefined : clock.now() + timeout;
    let count = 0;
    while (!enough(count)) {
      const e = await next(finish === undefined ? -1 : Math.max(0, finish - clock.now()));
      if (e === undefined) break;
      if (await deliver(e)) count++;
    }
    return count;
  }

  async function wait(timeout) {
    let count = await handle(timeout, 'wait', (n) => n > 0);
    if (count === 0) return 0;
    for (let e; (e = await next(0)) !== undefined;) if (await deliver(e)) count++;
    return count;
  }

  async function run(timeout) {
    stopped = false;
    return handle(timeout, 'run', () => stopped);
  }

  const define = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true });
  define(events, 'on', on);
  for (const f of [wait, run]) define(events, f.name, placed(f));
  define(events, 'stop', function stop() { stopped = true; });
  define(globalThis, 'on', on);
  define(globalThis, 'emit', emit);
})
