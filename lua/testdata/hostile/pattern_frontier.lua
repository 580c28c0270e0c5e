while true do ("a b "):rep(1000):gsub("%f[%w]%w-%f[%W]-x", "") end
