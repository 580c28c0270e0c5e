-- pairs over a table that gets a value back all the time
local t = {a = 1}
while true do for k in pairs(t) do t[k] = 2 end end
