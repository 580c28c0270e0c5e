-- coroutines suspended at every kind of continuation
local yield = coroutine.yield
tasks = {}
local function task(name, f) local co = coroutine.create(f) tasks[#tasks + 1] = {name, co} print(name, coroutine.resume(co, name)) end
task("plain", function(...) local x, y = yield(1, 2, ...) print("got", x, y) local z = yield() return x, y, z end)
task("nested calls", function() local function f(n) if n == 0 then return yield("deep") end return (f(n - 1)) end return f(10) end)
task("tail call", function() local function f(n) if n == 0 then return yield("deep") end return f(n - 1) end return f(10) end)
task("pcall", function() local ok, e = pcall(function() local v = yield("in pcall") error("oops " .. tostring(v)) end) print(ok, e) return ok, e, yield("after") end)
task("xpcall", function() return xpcall(function(a) local v = yield(a) error("oops") end, function(m) return "handled " .. m end, "arg") end)
task("pcall of yield", function() return pcall(yield, "direct") end)
task("vararg", function(...) local function f(...) local a = yield(select("#", ...)) return a, ... end return f(1, nil, 3, ...) end)
local mt = {}
for _, e in ipairs{"index", "add", "concat", "eq", "lt", "le", "len", "unm", "call", "newindex", "sub", "idiv", "shl", "bnot"} do
  mt["__" .. e] = function(a, b) return yield("in " .. e) end
end
local function obj() return setmetatable({}, mt) end
task("index", function() local o = obj() local v = o.field return v, o[1] end)
task("self", function() local o = obj() return pcall(function() return o:method() end) end)
task("newindex", function() local o = obj() o.x = 1 o[1] = 2 return "stored" end)
task("add", function() local o = obj() local r = o + 1 return r, 2 - o end)
task("concat", function() local o = obj() return "a" .. "b" .. o .. "c" .. 1 end)
task("concat both", function() local o, p = obj(), obj() return o .. "x" .. p end)
task("eq", function() if obj() == obj() then return "equal" else return "different" end end)
task("ne", function() local r = obj() ~= obj() return r end)
task("lt", function() if obj() < obj() then return "less" else return "not less" end end)
task("not le", function() local x = obj() while not (x <= 3) do return "more" end return "less" end)
task("len", function() return #obj() + 1 end)
task("unm", function() return -obj(), ~obj() end)
task("call", function() local o = obj() return o(1, 2), "end" end)
task("iterator", function() local s = 0 for a, b in function(_, c) local n = (c or 0) + 1 if n > 5 then return nil end return n, yield("turn " .. n) end do s = s + a print(a, b) end return s end)
task("pairs loop", function() local t = {x = 1, y = 2, z = 3} for k, v in pairs(t) do yield(k, v) t[k] = nil end return next(t) end)
task("ipairs loop", function() for i, v in ipairs{10, 20, 30} do yield(i, v) end end)
task("for loop", function() local s = 0 for i = 10, 1, -3 do s = s + i yield(i) end for x = 0, 1, 0.25 do s = s + x yield(x) end return s end)
task("pairs metamethod", function() local o = setmetatable({}, {__pairs = function(t) yield("in pairs") return next, {a = 1}, nil end}) for k, v in pairs(o) do print(k, v) end return "done" end)
local function closer(name) return setmetatable({name = name}, {__close = function(o, e) print("closing", o.name, e, yield("close " .. name)) end}) end
task("close block", function() do local a <close> = closer("a") local b <close> = closer("b") end return "left" end)
task("close return", function() local a <close> = closer("a") local b <close> = closer("b") return 1, 2, 3 end)
task("close open return", function(...) local a <close> = closer("a") return table.unpack({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) end)
task("close error", function() return pcall(function() local a <close> = closer("a") local b <close> = closer("b") error("failed") end) end)
task("close break", function() while true do local a <close> = closer("a") break end return "out" end)
task("close for", function() for i in function(_, c) return (c or 0) < 2 and (c or 0) + 1 or nil end, nil, nil, closer("for") do yield(i) end return "end" end)
task("upvalues", function() local n = 0 local function up() n = n + 1 return n end shared_up = up local v = yield(up) up() return n, v end)
inner = coroutine.create(function() local v = yield("inner 1") print("inner got", v) yield("inner 2") return "inner end" end)
task("nested coroutine", function() print(coroutine.resume(inner)) local v = yield("outer") print(coroutine.resume(inner, v)) yield("outer 2") return coroutine.status(inner) end)
task("wrap", function() local g = coroutine.wrap(function() for i = 1, 3 do yield(i) end end) print(g()) yield("first") print(g()) return g() end)
task("gmatch", function() for k, v in string.gmatch("a=1, b=2, c=3", "(%w+)=(%w+)") do yield(k, v) end end)
task("codes", function() for p, c in utf8.codes("hé!") do yield(p, c) end end)
task("select", function(...) return select(2, yield("x"), ...) end)
task("constructor", function() return #{1, 2, yield("list"), 4, yield("open")} end)
task("arguments", function() return math.max(3, yield("max")) end)
fresh = coroutine.create(function(...) return "fresh", ... end)
direct = coroutine.wrap(coroutine.yield) print(direct(1))
dead = coroutine.create(function() return 1 end) coroutine.resume(dead)
failed = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() print("closed late") end}) local y = nil; (function() y.z = 1 end)() end)
coroutine.resume(failed)
----
print(shared_up())
for round = 1, 14 do
  for _, t in ipairs(tasks) do
    local name, co = t[1], t[2]
    if coroutine.status(co) == "suspended" then print(name, coroutine.resume(co, round, "r" .. round)) end
    if round == 1 then print(debug.traceback(co)) end
  end
end
for _, t in ipairs(tasks) do print(t[1], coroutine.status(t[2])) end
print(shared_up(), coroutine.resume(fresh, 1, 2), direct(2), coroutine.status(dead), coroutine.resume(dead))
print(debug.traceback(failed), coroutine.status(failed), coroutine.close(failed), coroutine.status(failed))
