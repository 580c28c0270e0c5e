-- a syntax tree as deep as the source is long
local source = "return " .. ("a+"):rep(1e6 // 1 | 0) .. "1"
while true do load(source) end
