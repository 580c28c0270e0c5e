local start, source_of = __background, __function_source
__background, __function_source = nil, nil
local type, error = type, error

function background(fn, params)
  if type(fn) ~= "function" then
    error("bad argument #1 to 'background' (function expected, got " .. type(fn) .. ")", 2)
  end
  return start("lua", source_of(fn), params)
end
