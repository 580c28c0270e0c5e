-- every access goes through a metamethod that accesses again
local t = {}
setmetatable(t, {__index = function(_, k) return t[k .. "x"] end})
while true do pcall(function() return t.x end) end
