// Functions cannot be passed to the host, so the function is called here.
(function (check, { __failed: failed, placed }) {
  async function fails(fn, part, message) {
    if (typeof fn !== 'function') throw new TypeError("bad argument #1 to 'check.fails' (function expected)");
    let returned = true;
    let problem = '';
    try {
      await fn();
    } catch (thrown) {
      returned = false;
      problem = String(thrown?.message ?? thrown);
    }
    return failed(returned, problem, part, message);
  }

  Object.defineProperty(check, 'fails', { value: placed(fails), writable: true, configurable: true });
})
