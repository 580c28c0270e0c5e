// ends: script_error
Atomics.wait(new Int32Array(4), 0, 0)
