-- Objects: method calls with one and two levels of inheritance.
local Point = {}
Point.__index = Point
function Point.new(x) return setmetatable({ x = x, n = 0 }, Point) end
function Point:add(d) self.x = self.x + d; self.n = self.n + 1 end
function Point:get() return self.x end
local Deep = setmetatable({}, { __index = Point })
Deep.__index = Deep
function Deep.new(x) return setmetatable(Point.new(x), Deep) end
function Deep:twice() return self:get() * 2 end
local p, q = Point.new(0), Deep.new(0)
local z = 0
for _ = 1, 3000000 do
  p:add(1)
  q:add(2)
  z = z + p:get() + q:twice()
end
print(z, p.n, q.n)
