local t = setmetatable({}, {__mode = "k"})
local keep = {}
while true do local k = {} keep[#keep + 1] = k t[k] = {k} end
