local t = {}
while true do t[#t + 1] = utf8.char(table.unpack(setmetatable({}, {__len = function() return 200 end, __index = function() return 0x7fffffff end}))) end
