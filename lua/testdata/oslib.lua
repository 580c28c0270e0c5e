-- os library: what does not depend on the machine
local function try(f, ...) print(select(2, pcall(f, ...))) end
print(os.date("!%Y-%m-%d %H:%M:%S", 0), os.date("!%c", 86400), os.date("!%x %X %p %A %B %j %U %W %V %G %g %u %w %y %C %e %D %F %R %r %T %n%t%%", 1e9 // 1 | 0))
local d = os.date("!*t", 1234567890) print(d.year, d.month, d.day, d.hour, d.min, d.sec, d.wday, d.yday, d.isdst)
for _, t in ipairs{0, 1e8 // 1 | 0, 951782400, 4107542400, -1e9 // 1 | 0} do io.write(os.date("!%Y-%m-%d %a %j %U %W %V/%G|", t)) end print()
local t = {year = 2024, month = 14, day = -3, hour = 25, min = 61, sec = -1} local n = os.time(t) print(t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday)
print(os.time{year = 2000, month = 1, day = 2, hour = 0} - os.time{year = 2000, month = 1, day = 1, hour = 0}, os.time{year = 2000, month = 1, day = 1} - os.time{year = 2000, month = 1, day = 1, hour = 12})
print(os.time{year = "2000", month = "1", day = 1.0} == os.time{year = 2000, month = 1, day = 1}, os.date("%Y", os.time{year = 1999, month = 6, day = 15}))
print(os.difftime(10, 5), os.getenv("NO_SUCH_VARIABLE_HERE"), os.setlocale(), os.setlocale("C"), os.setlocale("no-such-locale"), os.setlocale(nil, "numeric"), math.type(os.time()), math.type(os.clock()))
print(os.execute() ~= nil, os.execute("exit 3"), os.execute("true")) print(os.execute("kill -9 $$"))
try(os.date, "%Ez") try(os.date, "%") try(os.date, "%9 x") try(os.date, "%E") try(os.date, "*t", 1.5) try(os.date, "!%Y", 1 << 60) try(os.time, {}) try(os.time, {year = 2000}) try(os.time, {year = "x", month = 1, day = 1}) try(os.time, {year = 2000, month = 1.5, day = 1})
try(os.time, {year = 1 << 40, month = 1, day = 1}) try(os.time, {year = 2000, month = 1, day = math.mininteger}) try(os.time, 1) try(os.getenv) try(os.setlocale, "C", "x") try(os.difftime)
print(os.remove("/no/such/file")) print(os.rename("/no/such/file", "/no/such/other"))
local name = os.tmpname() print(io.open(name) ~= nil, os.rename(name, name .. "x"), os.remove(name .. "x"), (io.open(name)))
