// The function is written down as its source text, which does not hold the variables around it.
(function (_, { __background: start }) {
  const text = Function.prototype.toString;
  globalThis.background = function background(fn, params) {
    if (typeof fn !== 'function') throw new TypeError("bad argument #1 to 'background' (function expected, got " + typeof fn + ')');
    const source = text.call(fn);
    if (/\{\s*\[native code\]\s*\}$/.test(source)) throw new TypeError("bad argument #1 to 'background' (a function of the script expected)");
    return start('javascript', 'const run = (' + source + ');\nasync function main(params) { return await run(params); }\n', params);
  };
})
