local t = {}
for i = 1, 1000 do t[i] = ("x"):rep(1000) end
local big = {}
for i = 1, 1000 do big[i] = table.concat(t) end
return table.concat(big)
