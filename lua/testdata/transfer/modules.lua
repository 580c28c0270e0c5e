-- packages, load, environments, collector settings
package.preload.greet = function(name, extra) print("loading", name, extra) return {hello = function(who) return "hello " .. who end} end
local greet = require "greet"
f = load("x = (x or 0) + 1 return x, greeting", "=chunk", "t", setmetatable({greeting = greet.hello("you")}, {__index = _G}))
print(f())
collectgarbage("setpause", 150)
counter = setmetatable({}, {__gc = function() print("finalized") end})
warn("@on")
gm = string.gmatch("one two three", "%a+") gm()
sorter = function(t) table.sort(t, function(a, b) return a > b end) return table.concat(t, ",") end
fib = function(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local env = {print = print} function inner() local _ENV = env y = 5 return y end
----
print(f()) print(x) print(require "greet".hello("me"), package.loaded.greet ~= nil)
print(collectgarbage("setpause", 200))
print(gm(), gm(), gm()) print(sorter{3, 1, 2}) print(fib(15)) print(inner(), y)
counter = nil collectgarbage() collectgarbage()
print(string.format("%5.2f|%-5s|%q", 3.14159, "ab", "x\ny"))
print(pcall(require, "nowhere"))
