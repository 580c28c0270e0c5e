while true do string.format(("%99d"):rep(200), table.unpack(setmetatable({}, {__len = function() return 200 end, __index = function() return 1 end}))) end
