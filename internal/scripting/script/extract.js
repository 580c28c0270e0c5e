// Writes a function of a session down as a script that runs by itself, with the functions,
// classes and values it uses. It is given the names that every script has, and the name
// under which the script is kept.
((standard, wanted) => {
  const keywords = 'arguments async await break case catch class const continue debugger default delete do else export extends false ' +
    'finally for function if import in instanceof let new null of return static super switch this throw true try typeof var void while with yield';
  const known = new Set([...standard, ...keywords.split(' ')]);
  const written = new Set();
  const declarations = [];
  const warnings = [];

  const look = (name) => { try { return (0, eval)(name); } catch { return undefined; } };

  // Functions that stand for tools are found by their names in any script.
  const isTool = (text) => text === '(...args) => callAsync(target, args)' || text === '(...args) => callSync(target, args)';

  // The names that a text may use. Too many do no harm.
  function namesIn(text) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g, ' ');
    return new Set(code.match(/(?<![\w$])(?<!(?<!\.\.)\.)[A-Za-z_$][\w$]*/g) ?? []);
  }

  // A value as an expression; undefined if it cannot be written.
  function literal(value, open = []) {
    if (value === null || typeof value === 'boolean' || typeof value === 'number' || value === undefined) return Object.is(value, -0) ? '-0' : String(value);
    if (typeof value === 'string') return JSON.stringify(value);
    if (typeof value === 'bigint') return value + 'n';
    if (typeof value !== 'object' || open.includes(value)) return undefined;
    const list = (values) => {
      const parts = [...values].map((v) => literal(v, [...open, value]));
      return parts.includes(undefined) ? undefined : '[' + parts.join(', ') + ']';
    };
    if (Array.isArray(value)) return list(value);
    if (value instanceof Date) return 'new Date(' + value.getTime() + ')';
    if (value instanceof RegExp) return String(value);
    for (const kind of [Map, Set]) {
      const inner = value instanceof kind ? list(value) : undefined;
      if (inner !== undefined) return 'new ' + kind.name + '(' + inner + ')';
    }
    if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return undefined;
    const parts = Object.keys(value).map((k) => [JSON.stringify(k), literal(value[k], [...open, value])]);
    return parts.some(([, v]) => v === undefined) ? undefined : '{ ' + parts.map((p) => p.join(': ')).join(', ') + ' }';
  }

  function declare(name, value) {
    if (typeof value !== 'function') {
      const text = literal(value);
      if (text === undefined) warnings.push(name + ': a value of this kind cannot be written down');
      else declarations.push('let ' + name + ' = ' + text + ';');
      return;
    }
    const text = Function.prototype.toString.call(value);
    if (isTool(text)) return;
    if (text.includes('[native code]')) {
      warnings.push(name + ': a built-in function cannot be written down');
      return;
    }
    for (const used of namesIn(text)) write(used);
    const own = /^(?:async\s+)?(?:function\s*\*?|class)\s+([\w$]+)/.exec(text);
    declarations.push(own?.[1] === name ? text : 'const ' + name + ' = ' + text + ';');
  }

  function write(name) {
    if (known.has(name) || written.has(name)) return;
    written.add(name);
    const value = look(name);
    if (value !== undefined) declare(name, value);
  }

  const entry = typeof look(wanted) === 'function' ? wanted : 'main';
  if (typeof look(entry) !== 'function') return { problem: 'the session has neither a function ' + wanted + ' nor main' };
  write(entry);
  if (entry !== 'main' && written.has('main')) return { problem: 'the function uses the global main, which is also the name of the script\'s own function' };
  if (typeof look('describe') === 'function') write('describe');
  else declarations.unshift('function describe() {\n  return { name: ' + JSON.stringify(wanted) + ', description: "Saved from a session." };\n}');
  if (entry !== 'main') declarations.push('function main(params) {\n  return ' + entry + '(params);\n}');
  return { source: declarations.join('\n\n') + '\n', warnings };
})
