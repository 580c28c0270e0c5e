-- Numeric loops with integer and float arithmetic.
local s, f = 0, 0.0
for i = 1, 12000000 do
  s = s + i % 7
  f = f * 0.5 + i
end
local n = 0
while n < 6000000 do
  n = n + 1
  if n & 1 == 0 then s = s - 1 else s = s ~ 3 end
end
print(s, f)
