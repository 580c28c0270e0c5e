-- Tables keyed by strings made at run time.
local t, keys = {}, {}
for i = 1, 120000 do keys[i] = "key:" .. i end
local n = 0
for round = 1, 6 do
  for i = 1, #keys do
    local k = keys[i]
    t[k] = (t[k] or 0) + i
  end
end
for k, v in pairs(t) do n = n + v % 7 end
local words = {}
for i = 1, 600000 do
  local w = "w" .. i % 5000
  words[w] = (words[w] or 0) + 1
end
for i = 1, #keys, 2 do t[keys[i]] = nil end
local left = 0
for _ in pairs(t) do left = left + 1 end
print(n, words.w17, left)
