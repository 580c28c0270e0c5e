local mt = {}
mt.__concat = function(a, b) return a .. b end
local t = setmetatable({}, mt)
while true do pcall(function() return t .. t end) end
