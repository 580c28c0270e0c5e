setmetatable({}, {__gc = function() while true do end end})
while true do collectgarbage() end
