-- a to-be-closed variable that never finishes closing
local x <close> = setmetatable({}, {__close = function() while true do end end})
error("leave")
