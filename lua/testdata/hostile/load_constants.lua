local parts = {}
for i = 1, 1e6 // 1 | 0 do parts[i] = "'" .. i .. "'," end
return load("return {" .. table.concat(parts) .. "}")
