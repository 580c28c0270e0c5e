while true do math.random(1 << 62) end
