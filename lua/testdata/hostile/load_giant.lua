return load(("x = 1 "):rep(1e6 // 1 | 0))
