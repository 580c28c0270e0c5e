-- its handler must not run when the budget is over
local x <close> = setmetatable({}, {__close = function() while true do end end})
while true do end
