// ends: well
const a = [0]; a.length = 245; a.push(2); a.length
