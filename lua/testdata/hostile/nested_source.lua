-- expressions nested too deep for a parser that recurses
while true do load("return " .. ("("):rep(100000) .. "1" .. (")"):rep(100000)) end
