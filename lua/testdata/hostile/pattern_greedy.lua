return ("a"):rep(50000):find(("a*"):rep(50) .. "b")
