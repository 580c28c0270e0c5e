-- Coroutines: values in and out, status, errors, closing, nesting.
local co = coroutine.create(function(a, b)
  print("start", a, b)
  local c = coroutine.yield(a + b)
  print("got", c)
  local d, e = coroutine.yield()
  print("got", d, e)
  return "end", nil
end)
print(coroutine.status(co), coroutine.resume(co, 1, 2))
print(coroutine.status(co), coroutine.resume(co, "c"))
print(coroutine.resume(co, "d", "e"))
print(coroutine.status(co), coroutine.resume(co))
print(select(2, coroutine.running()), coroutine.isyieldable(), pcall(coroutine.yield, 1))
print(coroutine.wrap(function() return coroutine.isyieldable(), select(2, coroutine.running()) end)())
local outer
outer = coroutine.create(function()
  local inner = coroutine.create(function() return coroutine.status(outer), coroutine.resume(outer) end)
  return coroutine.resume(inner)
end)
print(coroutine.resume(outer))
print(coroutine.resume(coroutine.running()))
-- generators
local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end
local sum = 0
for i in gen(100) do sum = sum + i end
print(sum)
local function permute(a, n)
  n = n or #a
  if n <= 1 then coroutine.yield(table.concat(a)) return end
  for i = 1, n do
    a[n], a[i] = a[i], a[n]
    permute(a, n - 1)
    a[n], a[i] = a[i], a[n]
  end
end
for p in coroutine.wrap(function() permute { "a", "b", "c" } end) do io.write(p, " ") end print()
-- errors
local bad = coroutine.create(function() local x <close> = setmetatable({}, { __close = function(_, e) print("closing", e) end }) error("oops") end)
print(coroutine.resume(bad)) print(coroutine.status(bad), coroutine.close(bad)) print(coroutine.close(bad))
print(select(2, pcall(coroutine.wrap(function() error({ 1 }) end)))[1])
print(pcall(coroutine.wrap(function() error("text") end)))
local w = coroutine.wrap(function() return 1 end)
print(w(), pcall(w))
-- closing
local c = coroutine.create(function()
  local a <close> = setmetatable({}, { __close = function() print("a closed") end })
  local b <close> = setmetatable({}, { __close = function() print("b closed") error("in b") end })
  coroutine.yield(1)
end)
print(coroutine.resume(c)) print(coroutine.close(c)) print(coroutine.status(c))
print(coroutine.close(coroutine.create(print)))
print(pcall(coroutine.close, coroutine.running()))
-- across pcall, sort, gsub
print(coroutine.resume(coroutine.create(function() return pcall(pcall, coroutine.yield, 1) end)))
print(coroutine.resume(coroutine.create(function() table.sort({ 3, 2, 1 }, function(a, b) coroutine.yield() return a < b end) end)))
print(coroutine.resume(coroutine.create(function() return ("x"):gsub("x", coroutine.yield) end)))
-- deep nesting of resumes
local function nest(n) if n == 0 then return "bottom" end return coroutine.wrap(nest)(n - 1) end
print(nest(100))
local function down(n) local ok, r = coroutine.resume(coroutine.create(down), n + 1) return r end
print(select(1, down(0)))
-- many alive at once
local list = {}
for i = 1, 1000 do list[i] = coroutine.wrap(function() local n = i while true do coroutine.yield(n) n = n + 1 end end) end
local total = 0
for _ = 1, 3 do for i = 1, 1000 do total = total + list[i]() end end
print(total)
print(coroutine.wrap(function(...) return select("#", ...) end)(nil, nil, nil))
local t = {}
for k, v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, i * i) end end) do t[#t + 1] = k .. "=" .. v end
print(table.concat(t, " "))
