-- Expressions, scopes, calls and multiple values.
local function v(...) return ... end
print(v(1, 2, 3), v(1, 2, 3), (v(1, 2, 3)))
local a, b, c, d = v(1, 2), v(3, 4)
print(a, b, c, d)
local t = { v(1, 2), v(3, 4), n = 5, [10] = 6, v(7, nil, 9) }
print(#t >= 3, t[1], t[2], t[3], t[5], t.n, t[10])
local i = 1
local arr = { 10, 20, 30 }
i, arr[i] = i + 1, 99
print(i, arr[1], arr[2])
a, b = b, a
print(a, b)
do local x = 1; local function f() return x end; x = 2; print(f()) end
local fns = {}
for k = 1, 3 do local j = k * 10; fns[k] = function() j = j + 1; return k, j end end
print(fns[1](), fns[1](), fns[3]())
local k = 1
while k < 4 do local c = k; fns[k] = function() c = c + 1 return c end k = k + 1 end
print(fns[1](), fns[1](), fns[2]())
repeat local stop = true; fns[1] = function() return stop end until stop
print(fns[1]())
for i = 3, 1 do print("never") end
for i = 1, 3 do local i = i * 2 io.write(i, " ") end print()
for i = math.maxinteger - 1, math.maxinteger do io.write(i, " ") end print()
for i = 1, 0.5, -0.25 do io.write(i, " ") end print()
for i = 1, 2.9 do io.write(i, " ") end print()
for i = -1, -3, -1 do io.write(i, " ") end print()
-- goto
for i = 1, 3 do
  for j = 1, 3 do
    if j == 2 then goto continue end
    io.write(i, ":", j, " ")
    ::continue::
  end
end
print()
do
  local n = 0
  ::top::
  n = n + 1
  if n < 5 then goto top end
  print(n)
end
-- logical operators
print(1 and nil, nil and 1, false or nil, nil or false, 1 or error(), not nil, not 0)
print(1 < 2 and "yes" or "no", 1 > 2 and "yes" or "no", nil == false, (1 == 1) == true)
local x, y = 5, nil
print(x and y, y and x, x or y, y or x, x and y or "z", not x == nil)
x = x and x + 1 or 0
y = y or x
print(x, y, x == y and x ~= nil)
-- arithmetic
print(7 // 2, -7 // 2, 7 // -2, 7.5 // 2, 7 % 3, -7 % 3, 7 % -3, -7.5 % 2, 1e308 * 10, -1e308 * 10)
print(1 / 0, -1 / 0, 3 / 2, 4 / 2, 2 ^ 0.5, 2 ^ 2, 10 // 0.0, -10 % math.huge)
print(5 & 3, 5 | 3, 5 ~ 3, ~5, 1 << 62, 1 << 63, 1 << 64, -1 >> 1, 1 << -1, 2.0 | 1)
print(math.maxinteger + 1 == math.mininteger, math.mininteger // -1, math.maxinteger * 2, 1 < 1.5, 2^63 > math.maxinteger)
print("10" + 5, "0x10" * 2, "3" .. 4, 10 .. "", -"2", "1e1" // 1, 1.0, 1e100, 2^31, -0.0, 100000000000000)
print(#"abc", #{ 1, 2, 3, nil, 5 } >= 3, -2 ^ 2, not 1 == 2, 2 .. 3 == "23", "a" < "b", "a" < "A", "" < "a")
print(1 == 1.0, math.type(1), math.type(1.0), 0x7fffffffffffffff, 0xffffffffffffffff, 0x1p4, 1e2, .5, 3.)
-- strings
print("a\65\x42\u{43}\z
       d", 'it\'s', [[
line1
line2]], [==[x]]y]==])
-- varargs
local function count(...) return select("#", ...), ... end
print(count()) print(count(nil)) print(count(nil, nil)) print((count(1, 2)))
local function tail(n, ...) if n == 0 then return ... end return tail(n - 1, n, ...) end
print(tail(5))
print(select("#", tail(200)))
local function loop(n) if n > 0 then return loop(n - 1) end return "deep" end
print(loop(1000000))
print(pcall(function() local function r() return 1 + r() end return r() end) == false)
-- constants
local K <const>, S <const> = 10, "s"
print(K + 1, S .. K, (function() return K, S end)())
print(load("return " .. ("("):rep(50) .. "1" .. (")"):rep(50))())
local env = { print = print }
local f = load("x = 1; return x, _ENV.x, y", "c", "t", env)
print(f()) print(env.x, rawget(_G, "x"))
do local _ENV = { print = print, z = 3 }; print(z) end
print(tostring(1e15), tostring(1e16), 2^53, 123456.789e3, 0.1, 1/3)
print(tonumber("  12  "), tonumber("1e1"), tonumber("0x1p-2"), tonumber("z", 36), tonumber("8", 8), tonumber("1 2"), tonumber(""), tonumber("0x"))
