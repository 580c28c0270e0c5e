local function deep(n) if n == 0 then coroutine.yield() end return deep(n - 1), 1 end
local t = {}
while true do local co = coroutine.create(deep) coroutine.resume(co, 1000) t[#t + 1] = co end
