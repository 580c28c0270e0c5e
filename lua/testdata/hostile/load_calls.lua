local source = "return a" .. ("()"):rep(1e6 // 1 | 0)
while true do load(source) end
