-- Messages of syntax errors.
for _, code in ipairs {
  "x =", "x = = 1", "if x then", "while true do x = 1", "for i = 1 do end", "for i do end", "local function end",
  "function f( end", "return return", "x = }", "x = 'abc", "x = \"abc\ndef\"", "x = [[abc", "x = [==[abc]]", "--[[ x", "x = [=abc",
  "x = '\\q'", "x = '\\300'", "x = '\\xZZ'", "x = '\\u{110000000}'", "x = '\\u{zz}'", "x = '\\u123'", "x = 0x", "x = 3x", "x = 1e", "x = 1..2", "x = 0xep1",
  "goto nowhere", "do goto l end local a ::l:: print(a)", "::a:: ::a::", "break", "local x <foo> = 1", "local x <const> = 1; x = 2",
  "local x <close>, y <close> = 1, 2", "local x <const> = 1; function f() x = 2 end", "f() = 1", "(a) = 1", "a.b:c = 1", "x, f() = 1", "a", "a.b", "'x'",
  "local 1 = 2", "x = function(a, 1) end", "x = ...; function f() return ... end", "x = {1, 2", "x = {[1 = 2}", "f(1, 2", "f{1, 2", "x = a.1", "x = a:b",
  "x = @", "x = $y", "x = 1 ~", "x = not", "x = #", "local function f() return 1 x = 2 end", "return 1, 2 x", "for a, b, c do end", "for a, 1 in x do end",
  "if x then else elseif y then end", "repeat x = 1", "until x", "end", "x = [==", "x = '\\", "x = 'a\\\nb' y =", "local a <const>", "goto = 1", "x = a b",
  "and", "local t = {} t.x:y = 1", "a.b.c", "do local x end end",
} do
  print((select(2, load(code, "=c"))))
end
print(load("x =", "@file.lua"))
print(load("x =", "some code\nwith lines"))
print(load("x =", "=" .. ("n"):rep(100)))
print(load("x =", "@" .. ("n"):rep(100)))
print(load("x =", ("n"):rep(100)))
