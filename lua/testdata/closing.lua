-- To-be-closed variables.
local function closer(name, fail)
  return setmetatable({}, { __close = function(_, e)
    print("close " .. name, e)
    if fail then error("from " .. name, 0) end
  end })
end
do local a <close> = closer "a"; local b <close> = closer "b"; print("body") end
local function f(...) local x <close> = closer "x"; return ... end
print(f(1, 2, 3))
local function g() local x <close> = closer "tail"; return f("not a tail call") end
print(g())
print(pcall(function() local a <close> = closer("a"); local b <close> = closer("b", true); error("first", 0) end))
print(pcall(function() local a <close> = closer("a", true); local b <close> = closer("b", true); return 1 end))
for i = 1, 2 do local l <close> = closer("loop" .. i); if i == 1 then goto cont end print("two") ::cont:: end
for i = 1, 3 do local l <close> = closer("brk" .. i); if i == 2 then break end end
for k in (function(_, k) k = (k or 0) + 1 if k < 3 then return k end end), nil, nil, closer "for" do print(k) end
for k in (function() return 1 end), nil, nil, closer "break" do break end
print(pcall(function() for k in (function() error("iter", 0) end), nil, nil, closer "forerr" do end end))
do local n <close>, m <const> = nil, 5; local fls <close> = false; print(m) end
print(pcall(function() local x <close> = {} end))
local function ret() local v <close> = closer "v"; local u = 1; return (function() return u end) end
print(ret()())
while true do local w <close> = closer "while"; break end
repeat local r <close> = closer "repeat"; local done = true until done
print(select("#", (function() local z <close> = closer "z"; return nil, nil, nil end)()))
local ok, err = pcall(function()
  local outer <close> = closer("outer")
  local inner <close> = setmetatable({}, { __close = function() local deep <close> = closer("deep"); error("inner", 0) end })
end)
print(ok, err)
