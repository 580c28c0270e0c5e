return ("x"):rep(1e6 // 1 | 0, ("y"):rep(2000))
