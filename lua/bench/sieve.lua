-- The sieve of Eratosthenes: filling and marking an array.
local count = 0
for _ = 1, 6 do
  local N = 700000
  local flags = {}
  for i = 2, N do flags[i] = true end
  for i = 2, N do
    if flags[i] then
      count = count + 1
      for j = i + i, N, i do flags[j] = false end
    end
  end
end
print(count)
