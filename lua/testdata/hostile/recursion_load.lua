local function f() load(f) end
while true do pcall(f) end
