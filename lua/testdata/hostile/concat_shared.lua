-- few strings in memory, a giant one as the result
local s = ("x"):rep(1e6 // 1 | 0)
local t = {}
for i = 1, 1000 do t[i] = s end
return table.concat(t)
