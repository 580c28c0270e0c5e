while true do load(("do "):rep(50000) .. ("end "):rep(50000)) end
