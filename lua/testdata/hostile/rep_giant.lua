return string.rep("x", 1e9 // 1 | 0)
