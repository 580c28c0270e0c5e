-- Binary trees: many small tables, soon garbage.
local function bottomUp(depth)
  if depth == 0 then return {} end
  return { bottomUp(depth - 1), bottomUp(depth - 1) }
end
local function check(tree)
  if tree[1] then return 1 + check(tree[1]) + check(tree[2]) end
  return 1
end
local long = bottomUp(16)
local total = 0
for depth = 4, 16, 2 do
  for _ = 1, 1 << (16 - depth) do total = total + check(bottomUp(depth)) end
end
print(total, check(long))
