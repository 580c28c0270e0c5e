local e = setmetatable({}, {__tostring = function() error("no") end})
while true do pcall(error, e) pcall(tostring, e) end
