-- find, match, gmatch, gsub
local function try(f, ...) print(select(2, pcall(f, ...))) end

print(("hello world"):find("wor"), ("hello"):find("l+"), ("hello"):find("xyz"), ("hello"):find(""), ("hello"):find("", 10), ("hello"):find("", 6))
print(("a.b"):find(".", 1, true), ("a.b"):find("%."), ("a+b"):find("+", 1, true), ("hello"):find("l", -2))
print(("key=val"):match("(%w+)=(%w+)"), ("  x "):match("^%s*(.-)%s*$"), ("2024-01-02"):match("(%d+)-(%d+)-(%d+)"))
print(("hello"):match("()ll()"), ("hello"):match(".-(l+)(.*)"), ("abc"):match("^b"), ("abc"):match("b", 2), ("abc"):match("^b", 2))
print(("THE (quick) fox"):find("%((%a+)%)"), ("f(a(b)c)d"):match("%b()"), ("THE (quick) fox"):gsub("%f[%a]%a+", "W"))
print(("[[x]]"):match("[]]+"), ("a-z"):match("[a%-z]+"), ("a^b"):match("[%^a]+"), ("x]"):match("[^]]"), ("\0\1"):match("%z"))
print(("abc123"):gsub("%d", ""), ("abc"):gsub("", "-"), ("abc"):gsub("b*", "x"), ("hello"):gsub("l", {l = "L"}), ("hello"):gsub("(l)(l)", "%2%1%0%%"))
print(("hello world"):gsub("o", "0", 1), ("abc"):gsub("%w", "%0%0"), ("abc"):gsub("^a", "x"), ("aaa"):gsub("^a", "x"), ("x"):gsub("x", "%%"))
print(("hello"):gsub("%w+", function(w) return w:upper() end), ("abc"):gsub("%w", function() end), ("abc"):gsub("b", function() return false end))
print(("a b c"):gsub("%w", {a = 1, b = 2.5, c = false}), ("abc"):gsub("(b)()", "%2"))
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do io.write(k, ":", v, ";") end
for w in ("one two  three"):gmatch("%a+") do io.write(w, "|") end
for p in ("abc"):gmatch("()") do io.write(p, " ") end
for s in ("abc"):gmatch("b*") do io.write("<", s, ">") end
for s in ("hello"):gmatch("l", 4) do io.write("[", s, "]") end
for s in ("^a^a"):gmatch("^a") do io.write("{", s, "}") end
print()
print(("x"):rep(20):match(("x?"):rep(10) .. ("x"):rep(15)))
print(("0123456789"):gsub("%d", function(d) return d % 2 == 0 and d or nil end))
print(("äöü"):gsub("[\xc3][\x80-\xbf]", "u"))
print(("%d"):gsub("%%d", "%%s"), ("a,b,,c"):gsub(",", ";"))
print(string.find("abc", "b", nil, true), string.find("a\0b", "\0"), string.find("abc", "[a-c]+$"), ("a$"):find("$", 1, true), ("a$b"):find("a$b"))
print(("xyzxyz"):match("(x)(y)(z)%1%2%3"), ("abab"):match("(ab)%1"), ("abba"):match("(a)(b)%2%1"))
print(("CamelCaseString"):gsub("(%u)", " %1"), ("  trim me "):gsub("^%s+", ""))
print(#("a"):rep(1000):gsub("a", "bb"), (("a"):rep(1000):gsub("a", "bb")):sub(1, 4))
try(string.find, "a", "[a")
try(string.find, "a", "[]")
try(string.find, "a", "[^]")
try(string.find, "a", "%")
try(string.find, "a", "(a")
try(string.find, "a", "a)")
try(string.find, "a", "%b")
try(string.find, "a", "%f")
try(string.find, "a", "(()")
try(string.gsub, "a", "a", "%x")
try(string.gsub, "a", "a", {a = {}})
try(string.gsub, "a", "a", function() return {} end)
try(string.gsub, "a", "a")
try(string.gsub, "a", "a", true)
try(string.gsub, "a", "a", "b", "c")
try(string.match, "a", ("("):rep(33))
try(string.rep, "a")
try(string.find, ("a"):rep(300), ("a?"):rep(300))
print(pcall(string.find, "a", "b["))
try(string.gmatch, "a")
try(string.gsub, "abc", "%w", function() error("inside") end)
