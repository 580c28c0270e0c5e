-- Protected calls that succeed and that fail.
local function ok(x) return x + 1 end
local function bad(x) error("no " .. x % 3) end
local n, fails = 0, 0
for i = 1, 2500000 do
  local _, v = pcall(ok, i)
  n = n + v
end
for i = 1, 300000 do
  local good, msg = pcall(bad, i)
  if not good then fails = fails + #msg end
end
print(n, fails)
