-- table library
local function try(f, ...) print(select(2, pcall(f, ...))) end
local t = {1, 2, 3}
table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 6, 5) table.insert(t, 3, "x")
print(table.concat(t, ","), #t)
print(table.remove(t), table.remove(t, 1), table.remove(t, 2), table.concat(t, ","), table.remove({}), table.remove({}, 0), #t, table.remove(t, #t + 1))
print(table.concat({}), table.concat({1, 2.5, "x"}), table.concat({1, 2, 3}, ", ", 2), table.concat({1, 2, 3}, ", ", 2, 2), table.concat({1, 2, 3}, ",", 3, 2), table.concat({"a"}, "x"))
print(table.unpack({1, 2, 3})) print(table.unpack({1, 2, 3}, 2)) print(table.unpack({1, 2, 3}, 2, 5)) print((table.unpack({1, 2})))
print(table.unpack({}, 1, 0), table.unpack({1, nil, 3}, 1, 3))
local p = table.pack(1, nil, 3) print(p.n, p[1], p[2], p[3]) print(table.pack().n)
print(table.concat(table.move({1, 2, 3}, 1, 3, 2), ","), table.concat(table.move({1, 2, 3}, 2, 3, 1), ","), table.concat(table.move({1, 2, 3}, 1, 3, 1, {}), ","), #table.move({1, 2}, 1, 0, 5))
print(table.concat(table.move({1, 2, 3}, 1, 3, 3), ","))
local a = {}
table.move({10, 20}, 1, 2, math.maxinteger - 1, a) print(a[math.maxinteger], a[math.maxinteger - 1])
try(table.insert, nil, 1) try(table.insert, {}, 3, 1) try(table.insert, {}, 0, 1) try(table.insert, {}) try(table.insert, {}, 1, 2, 3) try(table.insert, {}, "x", 1)
print(pcall(table.remove, {1, 2}, 5) == false, pcall(table.remove, {1, 2}, -1) == false) try(table.concat, {{}}) try(table.concat, {1, 2}, 1, "x") try(table.concat)
try(table.unpack, {}, 1, 1e8) try(table.unpack, {}, math.mininteger, math.maxinteger) try(table.unpack)
try(table.move, {}, 1, 2) try(table.move, {}, 1, math.maxinteger, 2) try(table.move, {}, 0, math.maxinteger, 2) try(table.move, 1, 2, 3, 4) try(table.move, {}, math.mininteger, 0, 1)
try(table.sort) try(table.sort, {1, 2}, 1)
-- metamethods
local log = {}
local proxy = setmetatable({}, {__len = function() return 3 end, __index = function(_, k) return k * 10 end, __newindex = function(_, k, v) log[#log + 1] = k .. "=" .. tostring(v) end})
print(table.concat(proxy, ","), table.unpack(proxy)) table.insert(proxy, 99) table.insert(proxy, 1, 5) print(table.remove(proxy, 1)) print(table.concat(log, " "))
try(table.insert, setmetatable({}, {__len = function() return "x" end}), 1)
table.insert(setmetatable({}, {__len = function() return math.maxinteger end}), 7)
-- many
local big = {} for i = 1, 1000 do table.insert(big, 1, i) end print(big[1], big[1000], #big)
for i = 1, 500 do table.remove(big, 1) end print(big[1], big[500], #big)
for i = #big, 1, -1 do table.remove(big) end print(#big, next(big))
