-- Every metamethod, also where coroutines yield inside them.
local log = {}
local mt = {}
for _, name in ipairs { "add", "sub", "mul", "div", "mod", "pow", "idiv", "band", "bor", "bxor", "shl", "shr", "concat" } do
  mt["__" .. name] = function(a, b)
    return name .. ":" .. (type(a) == "table" and "T" or tostring(a)) .. "," .. (type(b) == "table" and "T" or tostring(b))
  end
end
mt.__unm = function(a, b) return rawequal(a, b) and "unm" end
mt.__bnot = function(a, b) return rawequal(a, b) and "bnot" end
mt.__len = function() return 42 end
mt.__eq = function() return true end
mt.__lt = function(a, b) return type(a) == "number" end
mt.__le = function(a, b) return type(b) == "number" end
mt.__call = function(self, ...) return "call", ... end
mt.__tostring = function() return "OBJ" end
mt.__name = "My"
mt.__index = function(t, k) return "idx" .. tostring(k) end
mt.__newindex = function(t, k, v) rawset(t, k, v) log[#log + 1] = k end
mt.__pairs = function(t) return function(_, k) if not k then return 1, 2 end end, t, nil end
mt.__close = function() log[#log + 1] = "close" end
local o, p = setmetatable({}, mt), setmetatable({}, mt)
print(o + 1, 1 + o, o - o, o * 2.5, o / 1, o % 3, 2 ^ o, o // 1, o & 1, 1 | o, o ~ 1, o << 1, 1 >> o)
print(o .. "x", "x" .. o, 1 .. o, o .. p, "a" .. "b" .. o, -o, ~o, #o)
print(o == p, o ~= p, o == 1, o < 1, 1 < o, o <= 1, 1 <= o, o > 1, 1 >= o, not (o < 1))
print(o(1, 2), tostring(o), o.foo, o[1], rawget(o, "foo"), rawlen(o), rawequal(o, p))
o.x = 1 o.x = 2 o[1] = 3
for k, v in pairs(o) do print(k, v) end
do local c <close> = o end
print(table.concat(log, " "))
-- chains
local A = { a = 1 }
local B = setmetatable({ b = 2 }, { __index = A })
local C = setmetatable({}, { __index = B, __newindex = A })
C.new = 5
print(C.a, C.b, C.c, A.new, rawget(C, "new"))
print(pcall(function() local l = setmetatable({}, {}) getmetatable(l).__index = l return l.x end))
print(getmetatable("x").__index == string, getmetatable(setmetatable({}, { __metatable = "locked" })))
print(pcall(setmetatable, setmetatable({}, { __metatable = 1 }), {}))
-- yields inside metamethods
local Y = setmetatable({}, {
  __index = function(_, k) return coroutine.yield("index " .. k) end,
  __newindex = function(_, k, v) coroutine.yield("newindex " .. k) end,
  __add = function(a, b) return coroutine.yield("add") end,
  __eq = function() return coroutine.yield("eq") end,
  __lt = function() return coroutine.yield("lt") end,
  __le = function() return coroutine.yield("le") end,
  __concat = function() return coroutine.yield("concat") end,
  __len = function() return coroutine.yield("len") end,
  __call = function(_, x) return coroutine.yield("call " .. x) end,
  __unm = function() return coroutine.yield("unm") end,
  __close = function() coroutine.yield("close") end,
})
local co = coroutine.wrap(function()
  local r = { Y.foo, Y + 1, #Y, Y(7), -Y }
  Y.bar = 1
  r[#r + 1] = Y == setmetatable({}, getmetatable(Y))
  r[#r + 1] = Y < 1
  r[#r + 1] = not (Y <= 1)
  r[#r + 1] = "a" .. "b" .. Y .. "c"
  if Y > 2 then r[#r + 1] = "gt" else r[#r + 1] = "ngt" end
  do local c <close> = Y end
  for i, x in (function(_, i) i = i + 1 if i < 3 then return i, coroutine.yield("iter " .. i) end end), nil, 0 do r[#r + 1] = x end
  local ok, e = pcall(function() local c <close> = Y; error("E" .. coroutine.yield("pcall")) end)
  r[#r + 1] = e
  r[#r + 1] = select(2, xpcall(function() return coroutine.yield("xpcall") end, print))
  local function closing() local c <close> = Y; return "r1", "r2" end
  r[#r + 1] = table.concat({ closing() }, "+")
  for i = 1, #r do r[i] = tostring(r[i]) end
  return table.concat(r, " ")
end)
local got = co()
local n = 0
while true do
  io.write(got, "; ")
  n = n + 1
  got = co(n)
  if not got or n > 25 or got:find("gt") then break end
end
print() print(got)
