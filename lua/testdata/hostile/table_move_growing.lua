local t = {1}
while true do table.move(t, 1, #t, #t + 1) end
