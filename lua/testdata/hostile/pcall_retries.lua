local function work() while true do end end
repeat until pcall(work)
