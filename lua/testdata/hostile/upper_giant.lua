local s = ("x"):rep(10e6 // 1 | 0)
local t = {}
while true do t[#t + 1] = s:upper() end
