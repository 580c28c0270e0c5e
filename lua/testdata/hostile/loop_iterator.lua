for _ in function() return true end do end
