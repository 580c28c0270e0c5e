local source = "if a then " .. ("elseif a then "):rep(3e5 // 1 | 0) .. "end"
while true do load(source) end
