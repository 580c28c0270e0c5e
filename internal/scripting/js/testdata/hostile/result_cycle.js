// ends: script_error
const a = []; a.push({a}); a
