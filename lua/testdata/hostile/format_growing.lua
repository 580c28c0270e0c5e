local s = "x"
while true do s = string.format("%s%s", s, s) end
