-- Messages of run-time errors, with the names of variables.
local function try(code, ...)
  local f = assert(load(code, "=c"))
  print(select(2, pcall(f, ...)))
end
for _, code in ipairs {
  "local a; a.b = 1", "local a; return a.b.c", "return undefined.x", "undefined.x = 1", "undefined()",
  "local t = {} t.x.y = 1", "local t = {} t.x()", "local t = {} t:method()", "local t = {} t.a.b:c()",
  "local t = {{}} return t[1].x.y", "local t = {} return t[1][2]", "local s = 'x' return s.y.z",
  "local n; return n + 1", "local n; return 1 + n", "local n = {} return n * 2", "local t = {} return t.x - 1",
  "return 'a' + 1", "return {} .. 'x'", "local a, b = 'x' return a .. b", "local t = {} return t.x .. 'y'",
  "return 1 < 'x'", "return {} < {}", "return nil > 1", "return {} <= 1", "local x = 1.5 return x | 1", "return 1 & 'a'",
  "return 2^53 | 2^63", "return ~{}", "return -{}", "return #5", "local n return #n",
  "return 1 // 0", "return 1 % 0", "for i = 1, 10, 0 do end", "for i = 'a', 2 do end", "for i = 1, {} do end",
  "for i = 1, 2, {} do end", "for k in 5 do end", "for k in nil do end", "local x <close> = 42",
  "error('msg')", "error('msg', 0)", "error('msg', 2)", "error()", "error(nil)", "error(setmetatable({}, {__tostring = function() return 'T' end}))",
  "string.rep()", "('x'):rep({})", "('x'):bad()", "string.format('%d', 'x')", "string.format('%d', 1.5)",
  "table.concat({1, {}, 3})", "table.insert({}, 5, 6)", "table.insert(nil, 1)", "setmetatable(1, {})", "ipairs()", "tostring()",
  "math.floor('x')", "math.random(0, -1)", "select(0)", "rawset({}, nil, 1)", "local t = {} t[nil] = 1", "local t = {} t[0/0] = 1",
  "next({}, 'nokey')", "coroutine.resume(1)", "coroutine.wrap(function() error('in') end)()",
  "local up; local function f() up.x = 1 end f()", "local up; local function f() return up() end f()",
  "return math.huge // 1 | 0", "local a <const> = 5; return a.x.y", "return (nil)()", "return (1).x.y",
  "local function f(...) local a, b = ... return a + b end f(1)", "string.char(256)", "utf8.char(-1)",
} do
  try(code)
end
print(pcall(error))
print(select('#', pcall(error)))
local ok, e = pcall(function() local t = setmetatable({}, {__index = function(_, k) error("idx " .. k) end}) return t.key end)
print(ok, e)
print(xpcall(function() local x = nil; return x.y end, function(m) return "handled: " .. m end))
print(xpcall(function(...) return select('#', ...) end, print, 1, nil, nil))
print(select(2, xpcall(error, function(m) error("again") end, "x")) ~= nil)
-- tracebacks
local function level3() error("deep") end
local function level2() level3() end
function level1() level2() end
print((select(2, xpcall(level1, debug.traceback)):gsub("%[C%]: in .*$", "...")))
local co = coroutine.create(function() local x = nil; x() end)
print(coroutine.resume(co))
print(debug.traceback(co))
