-- Pattern matching: gsub with strings, tables and functions, gmatch, find.
local words = {}
for i = 1, 2000 do words[i] = "word" .. i .. " = value" .. (i * 7 % 100) end
local text = table.concat(words, ", ")
local total = 0
for round = 1, 60 do
  local s, n = text:gsub("%w+", string.upper)
  total = total + n + #s
  s, n = text:gsub("(%a+)(%d+)", "%2-%1")
  total = total + n + #s
  s, n = text:gsub("%d+", { ["7"] = "seven", ["14"] = "fourteen" })
  total = total + n + #s
  for k, v in text:gmatch("(%w+)%s*=%s*(%w+)") do total = total + #k + #v end
  local at = 1
  while true do
    local b, e = text:find("value%d0", at)
    if not b then break end
    total, at = total + b, e + 1
  end
end
print(total)
