table.insert(setmetatable({}, {__len = function() while true do end end}), 1)
