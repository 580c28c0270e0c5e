// ends: script_error
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
