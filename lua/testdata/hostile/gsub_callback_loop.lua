("x"):rep(1000):gsub("x", function() while true do end end)
