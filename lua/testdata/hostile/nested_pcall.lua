local function f(n) if n > 0 then return pcall(f, n - 1) end end
while true do f(150) end
