local p = ("[a-z]"):rep(1e6 // 1 | 0)
while true do ("x"):find(p) end
