-- error handlers that fail themselves
local function handler() error("again") end
while true do xpcall(error, handler) end
