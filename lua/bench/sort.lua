-- table.sort with and without a comparison function.
local seed = 42
local function random()
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return seed
end
local a, b, c = {}, {}, {}
for i = 1, 150000 do
  a[i] = random()
  b[i] = a[i]
  c[i] = "key" .. a[i] % 10000
end
table.sort(a)
table.sort(b, function(x, y) return x > y end)
table.sort(c)
print(a[1], a[#a], b[1], b[#b], c[1], c[#c])
