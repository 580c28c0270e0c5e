local t = {}
for i = 1e9 // 1 | 0, 1, -1 do t[i] = i end
