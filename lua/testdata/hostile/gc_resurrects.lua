local mt = {}
mt.__gc = function(o) setmetatable({}, mt) end
setmetatable({}, mt)
while true do collectgarbage() end
