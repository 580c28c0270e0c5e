-- tables with cycles, metatables, shared upvalues, order, marks
local log = {}
a = {name = "a", 1, 2, 3, [10] = "ten", [1.5] = true, [true] = "yes"}
b = {a = a, self = nil} b.self = b a.b = b a[a] = b a[print] = "printer"
setmetatable(a, {__index = function(t, k) return k .. "?" end, __tostring = function(t) return "<" .. t.name .. ">" end})
point = {} point.__index = point
function point.new(x, y) return setmetatable({x = x, y = y}, point) end
function point.__add(p, q) return point.new(p.x + q.x, p.y + q.y) end
function point.__eq(p, q) return p.x == q.x and p.y == q.y end
function point:norm() return self.x * self.x + self.y * self.y end
p1, p2 = point.new(1, 2), point.new(3, 4)
local shared = 10
function get() return shared end
function set(v) shared = v end
local function counter() local n = 0 return function() n = n + 1 return n end, function() n = 100 end end
next1, reset1 = counter()
next2, reset2 = counter()
next1() next1() next2()
holes = {1, 2, nil, 4, nil, nil, 7}
removed = {} for i = 1, 20 do removed["k" .. i] = i end for i = 1, 20, 2 do removed["k" .. i] = nil end
queue = {} for i = 1, 100 do queue[i] = i end for i = 1, 97 do queue[i] = nil end
big = {} for i = 1, 50 do big[i * 1000] = i end
objects = {} for i = 1, 30 do local k = {i} objects[k] = i objects[#objects + 1] = k end
for i = 1, 30, 3 do objects[objects[i]] = nil end
ids = tostring(a.b) .. tostring(get) .. tostring(objects)
math.random(100)
floats = {0.1, -0.0, 1/0, 2^53, math.mininteger, 1e300}
nan = 0/0
upper = string.upper
string.extra = function(s) return s .. "!" end
string.rep = nil
getmetatable("").__call = function(s, x) return s .. x end
weak = setmetatable({}, {__mode = "v"}) weak[1] = a weak.x = b
methods = {upper = string.upper, print = print, wrapped = coroutine.wrap(function() end)}
----
print(a, b.self == b, b.a == a, a.b.a[1], a.missing, #a, a[10], a[1.5], a[true], a[a] == b, a[print])
print((p1 + p2):norm(), p1 == point.new(1, 2), p1 == p2)
print(get()) set(20) print(get())
print(next1(), next2(), next1()) reset1() print(next1(), next2())
local s = "" for k, v in pairs(removed) do s = s .. k .. "=" .. v .. " " end print(s)
for i = 1, 7, 2 do removed["k" .. i] = i end
for k, v in pairs(removed) do print(k, v) end
print(#holes, #queue, queue[98]) holes[5] = 5 print(#holes) queue[101] = 1 queue[110] = 1 print(#queue)
for k, v in pairs(queue) do print(k, v) end
local n = 0 for k, v in pairs(objects) do n = n + 1 if type(k) == "table" then assert(objects[k] == v and k[1] == v) end end print(n)
for i = 1, 30 do assert(objects[i][1] == i) end
for i = 1, 50 do assert(big[i * 1000] == i) end
print(ids == tostring(a.b) .. tostring(get) .. tostring(objects), tostring({}), tostring(print))
print(math.random(1000000), math.random())
for _, f in ipairs(floats) do print(f, math.type(f), 1/f) end print(nan ~= nan)
print(upper("abc"), ("x"):extra(), string.rep, ("a")("b"), ("10") + 5, upper == string.upper, methods.upper == upper)
print(weak[1] == a, weak.x == b, pcall(methods.wrapped), pcall(methods.wrapped))
s = "" for k in pairs(string) do s = s .. k .. " " end print(s)
print(package.loaded.string == string, package.loaded._G == _G, _G._G == _G, require "string" == string)
print(pcall(error, {1}), select("#", table.unpack(holes)))
print(string.format("%q %s", 1/3, {} ~= {}))
undefined.x = 1
