// The output of programs is arbitrary bytes, so it is returned separately and combined here.
(function (globals, { __run: run }) {
  async function run_command(name, args = []) {
    if (typeof name !== 'string') {
      throw new TypeError("bad argument #1 to 'run_command' (string expected, got " + typeof name + ')');
    }
    const list = Array.isArray(args) ? args : args?.args;
    if (!Array.isArray(list)) {
      throw new TypeError("bad argument #2 to 'run_command' (list of arguments expected, got " + typeof args + ')');
    }
    const answer = await run(name, list);
    if (!Array.isArray(answer)) return answer; // made up in a preview
    const [status, stdout, stderr] = answer;
    return { status, stdout, stderr };
  }
  Object.defineProperty(globals, 'run_command', { value: run_command, writable: true, configurable: true });
})
