local s = ("x"):rep(50)
while true do string.format("%p", s .. "y") end
