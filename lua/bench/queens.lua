-- Queens by backtracking, on boards of four to ten, twelve times.
local function solve(n)
  local cols, up, down, found = {}, {}, {}, 0
  local function place(row)
    if row > n then found = found + 1 return end
    for c = 1, n do
      if not cols[c] and not up[row + c] and not down[row - c + n] then
        cols[c], up[row + c], down[row - c + n] = true, true, true
        place(row + 1)
        cols[c], up[row + c], down[row - c + n] = false, false, false
      end
    end
  end
  place(1)
  return found
end
local total = 0
for _ = 1, 12 do
  for n = 4, 10 do total = total + solve(n) end
end
print(total, solve(9))
