local s = ("\0"):rep(1e6 // 1 | 0)
while true do s = string.format("%q", s) end
