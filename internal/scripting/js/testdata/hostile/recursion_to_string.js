// ends: script_error
const o = {toString() { return `${o}` }}; `${o}`
