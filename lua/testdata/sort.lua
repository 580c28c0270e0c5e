-- table.sort, including the order of equal elements and the comparisons made
local function try(f, ...) print(select(2, pcall(f, ...))) end
local function show(t) print(table.concat(t, " ")) end
local t = {3, 1, 2} table.sort(t) show(t)
t = {"b", "a", "C", "B"} table.sort(t) show(t)
t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) show(t)
t = {} table.sort(t) show(t) t = {1} table.sort(t) show(t)
t = {1.5, 1, 2^53, -1, 0.5, -math.huge, math.huge} table.sort(t) show(t)
local words = {} for w in ("the quick brown fox jumps over the lazy dog and runs away from the big bad wolf"):gmatch("%a+") do words[#words + 1] = w end
table.sort(words, function(a, b) return #a < #b end) show(words)
local seed = 1
local function rnd() seed = (seed * 1103515245 + 12345) % 2147483648 return seed end
for _, n in ipairs{2, 3, 4, 5, 10, 50, 100, 101, 500, 2000} do
  local t, calls = {}, 0
  for i = 1, n do t[i] = rnd() % (n // 2 + 1) end
  table.sort(t, function(a, b) calls = calls + 1 return a < b end)
  for i = 2, n do assert(t[i - 1] <= t[i]) end
  print(n, calls)
end
local items = {} for i = 1, 40 do items[i] = {key = i % 5, id = i} end
table.sort(items, function(a, b) return a.key < b.key end)
for _, x in ipairs(items) do io.write(x.key, ":", x.id, " ") end print()
try(table.sort, {1, "a", 2}) try(table.sort, {1, 2, nil, 4, {}}) try(table.sort, {3, 2, 1}, function() error("cmp") end)
for n = 1, 12 do
  local t = {} for i = 1, n do t[i] = i end
  print(n, pcall(table.sort, t, function(a, b) return true end))
end
try(table.sort, {1, 2, 3, 4, 5}, function() return nil end)
local p = setmetatable({}, {__lt = function(a, b) return a.v < b.v end})
local objs = {} for i = 1, 5 do objs[i] = setmetatable({v = -i}, getmetatable(p)) end table.sort(objs) for i = 1, 5 do io.write(objs[i].v, " ") end print()
