local t = {}
for i = 1, 1000 do t["k" .. i] = i end
while true do local k repeat k = next(t, k) until not k end
