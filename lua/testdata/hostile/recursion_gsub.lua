local function f() return (("x"):gsub("x", f)) end
while true do pcall(f) end
