local function f(...) for i = 1, select("#", ...) do select(i, ...) end end
while true do f(table.unpack({}, 1, 200)) end
