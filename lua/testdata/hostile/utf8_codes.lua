local s = ("x"):rep(1e6 // 1 | 0)
while true do for _ in utf8.codes(s) do end end
