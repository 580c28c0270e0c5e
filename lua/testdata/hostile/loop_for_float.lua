for x = 0.0, 1.0, 1e-300 do end
