table.move({1}, 1, 1e15 // 1 | 0, 2)
