-- io library
local function try(f, ...) print(select(2, pcall(f, ...))) end
local name = os.tmpname()
local function put(s) local f = assert(io.open(name, "w")) f:write(s) f:close() end
local f = assert(io.open(name, "w")) print(io.type(f), io.type(42), f:write("line1\n", 2, " ", 2.5, " ", 1e15, "\nline3") == f, f:seek(), f:seek("set", 2), f:seek("cur"), f:seek("end")) print(f:close(), io.type(f), tostring(f))
for l in io.lines(name) do io.write("[", l, "]") end for l in io.lines(name, "L") do io.write("<", l, ">") end print()
f = io.open(name) print(f:read(), f:read("n"), f:read("n"), f:read("n"), f:read("L"), f:read("l"), f:read("l"), f:read("a"), f:read("a"), f:read(0), f:read(1)) f:close()
put("0x1F -12.5e1 .5 abc 99999999999999999999 1e+ 5") f = io.open(name) print(f:read("n", "n", "n")) print(f:read("n")) print(f:read("a")) f:close()
put("abc\n\ndef") f = io.open(name) print(f:read(2, 0, "l", "l", "L", "a", "l")) f:close()
put("12345") f = io.open(name, "r+") print(f:read(2)) f:seek("cur", 0) f:write("X") f:seek("set") print(f:read("a")) f:close()
f = io.open(name, "a+") f:write("end") f:seek("set") print(f:read("a")) f:close()
f = io.open(name, "rb") print(f:read("*a"), f:read("*l")) print(f:write("x")) f:close() f = io.open(name, "w") print(f:read("a")) f:close()
print(io.open("/no/such/file")) print(io.open("/no/such/file", "w")) try(io.open, name, "x") try(io.open, name, "rw") try(io.open) try(io.lines, "/no/such/file")
try(f.read, f) try(f.write, f, 1) try(f.close, f) try(f.lines, f) try(f.seek, f) try(io.read, "x") try(io.close, f) try(io.write, {})
f = io.open(name, "w") try(f.read, f, "y") try(f.seek, f, "x") try(f.seek, f, "set", 1.5) try(f.setvbuf, f, "x") print(f:setvbuf("no"), f:setvbuf("full", 1024), f:setvbuf("line"), f:flush(), io.flush() ~= nil) print(f:seek("set", -1)) f:close()
put("a b\nc d\n") for a, b in io.lines(name, 1, "l") do io.write(a, "-", tostring(b), ";") end print()
io.input(name) print(io.read(), io.read("a")) io.close(io.input()) try(io.read) io.input(io.stdin)
io.output(name) io.write("to file") io.close() try(io.write, "x") io.output(io.stdout) for l in io.lines(name) do print(l) end
do local g <close> = io.open(name) f = g end print(io.type(f))
local it = io.lines(name) it() print(pcall(it)) try(it)
try(function() for l in io.lines(name, "x") do end end)
local p = io.popen("echo hello; exit 3") print(p:read("a"), p:close()) p = io.popen("cat >/dev/null", "w") print(p:write("x") == p, p:close()) try(io.popen, "x", "rw")
f = io.tmpfile() f:write("temp") f:seek("set") print(f:read("a"), f:close()) print(io.stdout:seek("cur") ~= 0, tostring(io.stdout):match("^file %(0x") ~= nil, io.type(io.stdout))
print(io.stdout:close()) print(getmetatable(f).__name, f.nothing)
put(("x"):rep(100000) .. "\n" .. ("y"):rep(5)) f = io.open(name) print(#f:read("l"), f:read("l"), f:read("l")) f:seek("set") print(#f:read(100), #f:read(1e6 // 1 | 0), f:read(1)) f:close()
put("") f = io.open(name) print(f:read("a"), f:read("l"), f:read("n"), f:read(0)) f:close() for l in io.lines(name) do print("never") end
os.remove(name)
