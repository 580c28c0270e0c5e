while true do setmetatable({}, {__gc = true, __mode = "kv"}) end
