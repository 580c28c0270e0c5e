-- Multiplying matrices held as arrays of arrays.
local function matrix(n, seed)
  local m = {}
  for i = 1, n do
    local row = {}
    for j = 1, n do row[j] = (i * seed + j) % 10 + 0.5 end
    m[i] = row
  end
  return m
end
local function multiply(a, b, n)
  local c = {}
  for i = 1, n do
    local ai, ci = a[i], {}
    for j = 1, n do
      local s = 0
      for k = 1, n do s = s + ai[k] * b[k][j] end
      ci[j] = s
    end
    c[i] = ci
  end
  return c
end
local n = 220
local c = multiply(matrix(n, 3), matrix(n, 7), n)
c = multiply(c, matrix(n, 2), n)
print(c[1][1], c[n][n])
