local s = ("a"):rep(1e6 // 1 | 0)
while true do s:find("b", 1, true) end
