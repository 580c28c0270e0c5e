-- Making and calling closures.
local function counter(step)
  local n = 0
  return function() n = n + step; return n end
end
local total = 0
for i = 1, 600000 do
  local c = counter(i % 3)
  total = total + c() + c() + c()
end
local function compose(f, g) return function(x) return f(g(x)) end end
local inc = function(x) return x + 1 end
local f = inc
for _ = 1, 20 do f = compose(f, inc) end
for i = 1, 100000 do total = total + f(i) end
print(total)
