while true do for w in ("a"):rep(1000):gmatch("a-") do end end
