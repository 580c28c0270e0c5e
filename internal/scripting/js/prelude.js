// The part of the engine that runs inside the script's realm. It is evaluated once, into
// the template image. Built-ins it needs are captured before any script runs, so that a
// script that changes built-ins affects only itself. Go stores the functions it returns.
(function (hostCall, hostSync, hostLog, hostSeed) {
  'use strict';

  const { bind, call: invoke } = Function.prototype;
  const uncurry = bind.bind(invoke); // uncurry(method)(receiver, ...args)
  const { ownKeys, getPrototypeOf, setPrototypeOf, defineProperty, deleteProperty, getOwnPropertyDescriptor } = Reflect;
  const reflect = { __proto__: null, get: Reflect.get, has: Reflect.has, set: Reflect.set, ownKeys, getOwnPropertyDescriptor, defineProperty, deleteProperty };
  const { create, freeze } = Object;
  const { isArray } = Array;
  const { isFinite, isSafeInteger } = Number;
  const { parse, stringify, rawJSON } = JSON;
  const { Promise, Proxy, Error, TypeError, BigInt, String, Symbol, Map, Set, Date, RegExp, Uint8Array, ArrayBuffer } = globalThis;
  const { encodeURIComponent, parseInt } = globalThis;
  const wellFormed = uncurry(String.prototype.toWellFormed);
  const subarray = uncurry(Uint8Array.prototype.slice);
  const fromBase64 = Uint8Array.fromBase64.bind(Uint8Array);
  const toBase64 = uncurry(Uint8Array.prototype.toBase64);
  const join = uncurry(Array.prototype.join);
  const push = uncurry(Array.prototype.push);
  const includes = uncurry(Array.prototype.includes);
  const split = uncurry(String.prototype.split);
  const slice = uncurry(String.prototype.slice);
  const includesText = uncurry(String.prototype.includes);
  const charAt = uncurry(String.prototype.charCodeAt);
  const bigText = uncurry(BigInt.prototype.toString);
  const symbolText = uncurry(Symbol.prototype.toString);
  const dateText = uncurry(Date.prototype.toISOString);
  const dateTime = uncurry(Date.prototype.getTime);
  const regText = uncurry(RegExp.prototype.toString);
  const mapEach = uncurry(Map.prototype.forEach);
  const setEach = uncurry(Set.prototype.forEach);
  const seenHas = uncurry(Set.prototype.has);
  const seenAdd = uncurry(Set.prototype.add);
  const seenDrop = uncurry(Set.prototype.delete);
  const bigPrototype = BigInt.prototype;
  const nativeRandom = Math.random;

  const hide = (object, key, value) =>
    defineProperty(object, key, { value, writable: true, enumerable: false, configurable: true });

  // ---- values as JSON: integers stay integers, also those beyond 2^53; maps are objects,
  // sets are arrays and bytes are base64 text, because an empty object or one with a number
  // for each byte helps nobody; a promise is an error for the same reason

  function bigToJSON() { return rawJSON(bigText(this)); }

  hide(Map.prototype, 'toJSON', { toJSON() {
    const object = create(null);
    mapEach(this, (value, key) => { object[String(key)] = value; });
    return object;
  } }.toJSON);

  hide(Set.prototype, 'toJSON', { toJSON() {
    const list = [];
    setEach(this, (value) => { push(list, value); });
    return list;
  } }.toJSON);

  hide(Uint8Array.prototype, 'toJSON', { toJSON() { return toBase64(this); } }.toJSON);

  hide(ArrayBuffer.prototype, 'toJSON', { toJSON() { return toBase64(new Uint8Array(this)); } }.toJSON);

  hide(Promise.prototype, 'toJSON', { toJSON() { throw new TypeError('a promise has no value before it is awaited'); } }.toJSON);

  // JSON would have null in place of a number that is none.
  const refuseNaN = (key, value) => {
    if (typeof value !== 'number' || isFinite(value)) return value;
    throw new TypeError((key === '' ? 'the value' : String(key)) + ' is ' + value + ', which JSON cannot express');
  };

  function encode(value, replace) {
    const ours = getOwnPropertyDescriptor(bigPrototype, 'toJSON') === undefined;
    if (ours) hide(bigPrototype, 'toJSON', bigToJSON);
    try {
      const text = stringify(value, replace);
      if (replace === undefined && text !== undefined && includesText(text, 'null')) stringify(value, refuseNaN);
      return text;
    } finally {
      if (ours) deleteProperty(bigPrototype, 'toJSON');
    }
  }

  function isInteger(text) {
    for (let i = charAt(text, 0) === 45 ? 1 : 0; i < text.length; i++) {
      const c = charAt(text, i);
      if (c < 48 || c > 57) return false;
    }
    return true;
  }

  const revive = (_, value, context) =>
    typeof value === 'number' && !isSafeInteger(value) && isInteger(context.source) ? BigInt(context.source) : value;

  // Decodes an answer of the host: its first letter is the type.
  function decode(answer) {
    const text = slice(answer, 1);
    switch (answer[0]) {
      case 'v': return opened(parse(text));
      case 'b': return opened(parse(text, revive));
      default: return undefined;
    }
  }

  // Bytes are passed as { $bytes: base64 }, alone or in a list, as an argument and as an
  // answer.
  const bytesOf = (value) =>
    typeof value === 'object' && value !== null && typeof getOwnPropertyDescriptor(value, '$bytes')?.value === 'string'
      ? fromBase64(value.$bytes) : value;

  // An answer that was made up in a rehearsal reports the first use of its content. 'then'
  // is not a use: awaiting the answer reads it.
  const lazyKey = '$luanette.lazy';

  function lazily(number, target) {
    let looked = false;
    const look = () => {
      if (looked) return;
      looked = true;
      hostSync('__looked', encode([number]));
    };
    const handler = { __proto__: null };
    const traps = ['get', 'has', 'set', 'ownKeys', 'getOwnPropertyDescriptor', 'defineProperty', 'deleteProperty'];
    for (let i = 0; i < traps.length; i++) {
      const use = reflect[traps[i]];
      handler[traps[i]] = (object, ...args) => {
        if (args[0] !== 'then') look();
        return use(object, ...args);
      };
    }
    return new Proxy(target, handler);
  }

  function opened(value) {
    if (typeof value === 'object' && value !== null && typeof value[lazyKey] === 'number') return lazily(value[lazyKey], value.value);
    if (!isArray(value)) return bytesOf(value);
    for (let i = 0; i < value.length; i++) value[i] = bytesOf(value[i]);
    return value;
  }

  // Encodes text as UTF-8; bytes are returned unchanged.
  function bytes(value) {
    if (typeof value !== 'string') return value;
    const escaped = encodeURIComponent(wellFormed(value));
    const out = new Uint8Array(escaped.length);
    let length = 0;
    for (let i = 0; i < escaped.length; i++) {
      let c = charAt(escaped, i);
      if (c === 37) { // %XX
        c = parseInt(slice(escaped, i + 1, i + 3), 16);
        i += 2;
      }
      out[length++] = c;
    }
    return subarray(out, 0, length);
  }

  function packed(args) {
    for (let i = 0; i < args.length; i++) {
      if (args[i] instanceof Uint8Array) args[i] = { $bytes: toBase64(args[i]) };
    }
    return encode(args);
  }

  // ---- calls

  let pending = create(null);
  let last = 0;
  const blamed = new WeakMap(); // errors of the host → the function that raised them
  for (const method of ['get', 'set']) hide(blamed, method, WeakMap.prototype[method]);

  // The error is created where the script calls, so that its stack shows the script's line.
  function blame(error, answer, name) {
    const { message, code, hint } = parse(slice(answer, 1));
    hide(error, 'message', message);
    blamed.set(error, name);
    if (code) error.code = code;
    if (hint) error.hint = hint;
    return error;
  }

  // What a call returns has no property of its result: to read one is to forget await, and
  // undefined would not tell.
  const unawaited = new Proxy(create(Promise.prototype), {
    __proto__: null,
    get(object, key, promise) {
      if (typeof key === 'symbol' || reflect.has(object, key)) return reflect.get(object, key, promise);
      throw new TypeError("cannot read property '" + key + "' of a promise");
    },
  });

  function callAsync(name, args) {
    const error = new Error();
    const promise = new Promise((resolve, reject) => {
      const id = ++last;
      const refused = hostCall(id, name, packed(args));
      if (refused !== undefined) reject(blame(error, refused, name));
      else pending[id] = { resolve, reject, error, name };
    });
    setPrototypeOf(promise, unawaited);
    return promise;
  }

  function callSync(name, args) {
    const answer = hostSync(name, packed(args));
    if (answer[0] === 'e') throw blame(new Error(), answer, name);
    return decode(answer);
  }

  function settle(id, answer) {
    const waiting = pending[id];
    if (waiting === undefined) return;
    delete pending[id];
    if (answer[0] === 'e') waiting.reject(blame(waiting.error, answer, waiting.name));
    else waiting.resolve(decode(answer));
  }

  const makeFunction = (name, target, sync) => {
    const f = sync ? (...args) => callSync(target, args) : (...args) => callAsync(target, args);
    defineProperty(f, 'name', { value: name, configurable: true });
    return f;
  };

  // A namespace resolves nothing: any path below it is a function of the host, created on
  // first access. 'then' stays undefined, or awaiting a namespace would call it.
  const plainKeys = freeze({ __proto__: null, then: 1, toJSON: 1, prototype: 1, constructor: 1 });

  // Lists the namespaces below mcp, or the tools of one; undefined for a tool.
  function listed(path) {
    const names = split(path, '.');
    if (names[0] !== 'mcp' || names.length > 2) return undefined;
    const found = callSync(names.length === 1 ? 'mcp.namespaces' : 'mcp.tools', names.length === 1 ? [] : [names[1]]);
    const keys = [];
    for (let i = 0; i < found.length; i++) push(keys, names.length === 1 ? found[i] : found[i].name);
    return keys;
  }

  // The list in a result: it may have any name, if it is the only one.
  const listNames = ['items', 'data', 'results', 'values', 'records', 'entries', 'rows', 'objects', 'list', 'value', 'nodes', 'edges'];
  function itemsOf(result) {
    if (isArray(result)) return result;
    if (typeof result !== 'object' || result === null) return [];
    for (let i = 0; i < listNames.length; i++) if (isArray(result[listNames[i]])) return result[listNames[i]];
    let found;
    for (const key in result) {
      if (!isArray(result[key])) continue;
      if (found !== undefined) return [];
      found = result[key];
    }
    return found ?? [];
  }

  // Iterates over the items of all pages of a list.
  const maxPages = 10000;
  async function* pagesOf(path, args) {
    const given = { ...args };
    for (let page = 1; ; page++) {
      const result = await callAsync(path, [given]);
      const items = itemsOf(result);
      for (let i = 0; i < items.length; i++) yield items[i];
      const token = result?.next_page_token;
      if (token === undefined || token === null || token === '') return;
      if (token === given.page_token || page === maxPages) {
        throw new Error('the list does not end: page ' + page + ' is followed by itself, or there are too many');
      }
      given.page_token = token;
    }
  }

  // Whether a path is that of a tool, whose pages can be iterated over.
  const isTool = (path) => {
    const names = split(path, '.');
    return names[0] === 'mcp' && names.length === 3;
  };

  const namespacePaths = new WeakMap(); // namespaces and tools → their paths
  for (const method of ['get', 'set']) hide(namespacePaths, method, WeakMap.prototype[method]);

  function makeNamespace(path, fixed) {
    const refuse = () => { throw new TypeError(path + ' cannot be changed'); };
    const namespace = new Proxy(() => {}, {
      __proto__: null,
      get(_, key) {
        if (typeof key === 'symbol') return key === Symbol.toStringTag ? path : undefined;
        if (fixed !== undefined && fixed[key] !== undefined) return fixed[key];
        if (key === 'toString' || key === 'valueOf') return () => '[' + path + ']';
        if (key === 'pages' && isTool(path)) return (args) => pagesOf(path, args);
        if (key === 'toJSON' && listed(path) !== undefined) return () => listed(path);
        return plainKeys[key] === 1 ? undefined : makeNamespace(path + '.' + key);
      },
      apply: (_, __, args) => callAsync(path, args),
      ownKeys: () => listed(path) ?? [],
      getOwnPropertyDescriptor: (_, key) => (typeof key === 'string' && includes(listed(path) ?? [], key)
        ? { value: makeNamespace(path + '.' + key), enumerable: true, configurable: true, writable: true } : undefined),
      set: refuse, defineProperty: refuse, deleteProperty: refuse, setPrototypeOf: refuse, preventExtensions: refuse,
    });
    namespacePaths.set(namespace, path);
    return namespace;
  }

  // Formats a function; a namespace with the names of its tools.
  function inspectFunction(value, depth) {
    const path = namespacePaths.get(value);
    if (path === undefined) return '[function ' + String(getOwnPropertyDescriptor(value, 'name')?.value ?? '') + ']';
    const names = depth > 0 ? listed(path) : undefined;
    return names === undefined ? '[function ' + path + ']' : inspectEntries(path + ' {', '}', names, 0);
  }

  // ---- start of a run

  // Wraps an asynchronous function of a module so that its errors have the position of the
  // call: an error thrown after an await has no such stack.
  const placed = (f) => ({ async [f.name](...args) {
    const here = new Error();
    try {
      return await f(...args);
    } catch (problem) {
      if (problem instanceof Error) hide(problem, 'stack', here.stack);
      throw problem;
    }
  } }[f.name]);

  // Adds a module: its object, its functions, and the additions of its source.
  function install(text, source) {
    const { name, space, funcs } = parse(text);
    let object = globalThis;
    if (space) {
      object = create(null); // the fixed functions of the namespace
      hide(globalThis, name, makeNamespace(name, object));
    } else if (name !== '') {
      hide(globalThis, name, object = {});
    }
    const host = { __proto__: null, inspect, bytes, placed };
    for (let i = 0; i < funcs.length; i++) {
      const { name: key, target, sync, hidden } = funcs[i];
      const f = host[key] = makeFunction(key, target, sync);
      if (!hidden) hide(object, key, f);
    }
    if (source !== undefined) source(object, host);
  }

  // Functions found by their names in the source are defined only if the name is free, or if
  // an earlier script of the session found a function under it.
  let found = create(null);

  function addFound(name, target, sync) {
    const now = getOwnPropertyDescriptor(globalThis, name);
    if (now !== undefined && (found[name] === undefined || now.value !== found[name])) return;
    hide(globalThis, name, found[name] = makeFunction(name, target, sync));
  }

  let seeded = false;
  let result;

  function begin(text) {
    pending = create(null);
    last = 0;
    seeded = false;
    result = undefined;
    if (text === '') return;
    const funcs = parse(text);
    for (let i = 0; i < funcs.length; i++) addFound(funcs[i].name, funcs[i].target, funcs[i].sync);
  }

  defineProperty(globalThis, '__result__', {
    get: () => result,
    set: (value) => { result = value; },
    enumerable: false,
    configurable: true,
  });

  // Returns the result: the value of __result__, or else the value of the script.
  // In a session it is looked at: what JSON lacks is text.
  const finish = (lexical, completion, inSession) => {
    if (result !== undefined) completion = result;
    else if (lexical !== undefined) completion = lexical;
    if (inSession === undefined) return encode(completion);
    try {
      return encode(completion, legible);
    } catch {
      return encode(inspect(completion)); // it contains itself, or cannot be read
    }
  };

  const legible = (key, value) =>
    typeof value === 'function' || typeof value === 'symbol' || typeof value === 'number' && !isFinite(value) ? inspect(value, 1) : value;

  // Calls a function of the script from outside. Its result may be a promise.
  const enter = async (fn, argument) => fn(decode(argument));

  // ---- errors

  const text = (value) => (value === undefined || value === null ? '' : typeof value === 'string' ? value : inspect(value, 2));

  function describe(error) {
    try {
      if (typeof error !== 'object' || error === null) return stringify({ message: inspect(error, 2) });
      const { name, message, stack, code, hint } = error;
      const func = blamed.get(error);
      if (stack === undefined && message === undefined) return stringify({ message: inspect(error, 2) });
      return stringify({
        name: slice(text(name), 0, 200),
        message: slice(text(message), 0, 8 * 1024),
        stack: slice(text(stack), 0, 16 * 1024),
        code: slice(text(code), 0, 200),
        hint: slice(text(hint), 0, 2000),
        func,
      });
    } catch {
      return '{"message":"an error that cannot be read"}';
    }
  }

  // ---- console

  const lineLimit = 16 * 1024;

  function inspectEntries(open, close, entries, more) {
    if (more > 0) push(entries, '… ' + more + ' more');
    return entries.length === 0 ? open + close : open + ' ' + join(entries, ', ') + ' ' + close;
  }

  const most = 100; // entries shown of one object

  function inspectObject(value, depth, seen) {
    const below = (v) => inspect(v, depth - 1, seen, true);
    const entries = [];
    if (isArray(value)) {
      const length = value.length < most ? value.length : most;
      for (let i = 0; i < length; i++) push(entries, below(value[i]));
      return inspectEntries('[', ']', entries, value.length - length);
    }
    let count = 0;
    if (value instanceof Map) {
      mapEach(value, (v, k) => { if (count++ < most) push(entries, below(k) + ' => ' + below(v)); });
      return inspectEntries('Map {', '}', entries, count - most);
    }
    if (value instanceof Set) {
      setEach(value, (v) => { if (count++ < most) push(entries, below(v)); });
      return inspectEntries('Set {', '}', entries, count - most);
    }
    const keys = ownKeys(value);
    for (let i = 0; i < keys.length; i++) {
      const property = getOwnPropertyDescriptor(value, keys[i]);
      if (property === undefined || !property.enumerable || count++ >= most) continue;
      const key = typeof keys[i] === 'symbol' ? '[' + symbolText(keys[i]) + ']' : keys[i];
      push(entries, key + ': ' + ('value' in property ? below(property.value) : '[getter]'));
    }
    const maker = getPrototypeOf(value)?.constructor?.name;
    const title = typeof maker === 'string' && maker !== 'Object' && maker !== '' ? maker + ' ' : '';
    return inspectEntries(title + '{', '}', entries, count - most);
  }

  // inspect formats any value for people. It terminates for cyclic and deep values.
  function inspect(value, depth = 4, seen = new Set(), quoted = false) {
    switch (typeof value) {
      case 'string': return quoted ? stringify(slice(value, 0, lineLimit)) : value;
      case 'bigint': return bigText(value) + 'n';
      case 'symbol': return symbolText(value);
      case 'function': return inspectFunction(value, depth);
      case 'object': break;
      default: return String(value);
    }
    if (value === null) return 'null';
    if (value instanceof Error) return String(value.name) + ': ' + String(value.message);
    if (value instanceof Promise) return '[promise]';
    if (value instanceof Date) return isFinite(dateTime(value)) ? dateText(value) : 'invalid date';
    if (value instanceof RegExp) return regText(value);
    if (seenHas(seen, value)) return '[circular]';
    if (depth <= 0) return isArray(value) ? '[…]' : '{…}';
    seenAdd(seen, value);
    try {
      return inspectObject(value, depth, seen);
    } finally {
      seenDrop(seen, value);
    }
  }

  function write(level, args) {
    const parts = [];
    for (let i = 0; i < args.length; i++) push(parts, slice(inspect(args[i]), 0, lineLimit));
    hostLog(level, slice(join(parts, ' '), 0, lineLimit));
  }

  const console = {};
  const lines = { debug: 'debug', log: 'log', info: 'info', warn: 'warn', error: 'error', trace: 'debug', dir: 'log', table: 'log', group: 'log' };
  for (const name of ownKeys(lines)) hide(console, name, { [name](...args) { write(lines[name], args); } }[name]);
  hide(console, 'groupEnd', () => {});
  hide(console, 'assert', (ok, ...args) => { if (!ok) write('error', ['assertion failed', ...args]); });
  hide(globalThis, 'console', console);

  // ---- time and random numbers come from the host

  hide(Math, 'random', { random() {
    if (!seeded) {
      hostSeed();
      seeded = true;
    }
    return nativeRandom();
  } }.random);

  hide(globalThis, 'sleep', { sleep(ms) {
    if (typeof ms !== 'number' || !(ms >= 0)) throw new TypeError('sleep takes a number of milliseconds');
    return callAsync('sleep', [ms]);
  } }.sleep);

  return { begin, settle, encode, describe, finish, enter, install };
})
