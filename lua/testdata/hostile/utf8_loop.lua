local s = ("\u{10FFFF}"):rep(100000)
while true do utf8.len(s) end
