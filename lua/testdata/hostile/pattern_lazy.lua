return ("a"):rep(50000):find((".-"):rep(50) .. "b")
