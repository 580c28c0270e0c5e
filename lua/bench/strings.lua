-- Building strings: concatenation, tostring, format, table.concat.
local parts = {}
for i = 1, 600000 do
  parts[#parts + 1] = "item " .. i .. ": " .. (i * 3 % 17) .. ";"
end
local text = table.concat(parts, "\n")
local n = 0
for i = 1, 200000 do
  local s = string.format("%d/%s/%5.2f", i, "x", i / 3)
  n = n + #s
end
local acc = ""
for i = 1, 8000 do acc = acc .. "ab" end
print(#text, n, #acc, text:sub(1000, 1010), text:byte(-2))
