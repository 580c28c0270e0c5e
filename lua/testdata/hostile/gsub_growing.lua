local s = "x"
while true do s = s:gsub("x", "xxxxxxxxxx") end
