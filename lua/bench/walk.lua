-- Walking nested tables as they come from JSON.
local function record(i)
  return {
    id = i, name = "user" .. i, tags = { "a", "b", "c" }, active = i % 2 == 0,
    address = { city = "town" .. i % 50, zip = i * 3, geo = { lat = i / 7, lon = -i / 11 } },
  }
end
local data = {}
for i = 1, 3000 do data[i] = record(i) end
local count = { table = 0, string = 0, number = 0, boolean = 0 }
local function walk(v)
  local t = type(v)
  count[t] = count[t] + 1
  if t == "table" then
    for _, x in pairs(v) do walk(x) end
  end
end
for _ = 1, 25 do walk(data) end
local sum = 0
for _ = 1, 150 do
  for _, r in ipairs(data) do
    if r.active and r.address.geo.lat > 10 then sum = sum + r.address.zip + #r.tags end
  end
end
print(count.table, count.string, count.number, count.boolean, sum)
