package.preload.x = function() while true do end end
require("x")
