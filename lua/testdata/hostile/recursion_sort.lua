local function f() table.sort({2, 1}, f) end
while true do pcall(f) end
