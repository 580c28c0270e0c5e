local t = {}
for i = 1, math.huge do t["key" .. i] = true end
