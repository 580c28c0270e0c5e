-- Switching between coroutines, and making many.
local gen = coroutine.wrap(function()
  for i = 1, 2000000 do coroutine.yield(i) end
  return 0
end)
local sum = 0
repeat
  local v = gen()
  sum = sum + v
until v == 0
for i = 1, 100000 do
  local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) return a + b end)
  local _, x = coroutine.resume(co, i)
  local _, y = coroutine.resume(co, x)
  sum = sum + y
end
print(sum)
