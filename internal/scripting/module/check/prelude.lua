-- Lua functions cannot be passed to the host, so the function is called here.
local failed = check.__failed
check.__failed = nil
local type, error, pcall, tostring = type, error, pcall, tostring

function check.fails(fn, part, message)
  if type(fn) ~= "function" then
    error("bad argument #1 to 'check.fails' (function expected, got " .. type(fn) .. ")", 2)
  end
  local ok, problem = pcall(fn)
  return failed(ok, tostring(problem), part, message)
end
