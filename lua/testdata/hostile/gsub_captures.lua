return (("x"):rep(1e5 // 1 | 0):gsub("x", ("%0"):rep(10000)))
