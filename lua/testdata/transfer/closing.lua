-- coroutines closed in the copy, errors after the move, deep stacks
local function closer(n) return setmetatable({}, {__close = function(_, e) print("close", n, e) end}) end
co = coroutine.wrap(function()
  local a <close> = closer(1)
  local function deep(n) local b <close> = closer("deep" .. n) if n > 0 then return (deep(n - 1)) end coroutine.yield("bottom") error({code = 5}) end
  return deep(5)
end)
thread = coroutine.create(function() local a <close> = closer("t") coroutine.yield() end)
coroutine.resume(thread)
handled = coroutine.create(function()
  return xpcall(function() coroutine.yield(1) local x = nil return x.y end, debug.traceback)
end)
coroutine.resume(handled)
many = {}
for i = 1, 50 do many[i] = coroutine.wrap(function() for j = 1, 100 do coroutine.yield(i * j) end end) many[i]() end
local deep = coroutine.create(function() local function f(n) if n == 0 then coroutine.yield("there") return 0 end return 1 + f(n - 1) end return f(5000) end)
coroutine.resume(deep)
stack = deep
print(co())
----
print(pcall(co))
print(coroutine.close(thread), coroutine.status(thread))
print(coroutine.resume(handled))
local s = 0 for i, g in ipairs(many) do s = s + g() + g() end print(s)
print(coroutine.resume(stack))
