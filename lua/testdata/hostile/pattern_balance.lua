return ("("):rep(100000):find("%b()")
