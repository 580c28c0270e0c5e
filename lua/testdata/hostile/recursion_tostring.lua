local t = setmetatable({}, {__tostring = function(t) return tostring(t) end})
while true do pcall(tostring, t) end
