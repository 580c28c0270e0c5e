-- Namespaces and tools are created on first access. A name that does not exist
-- reads as nil, so that `if mcp.git then` works and a wrong call is the
-- ordinary "attempt to call a nil value".
local bind, has = mcp.__bind, mcp.has
mcp.__bind, mcp.__invoke = nil, nil
local type, rawget, rawset, setmetatable = type, rawget, rawset, setmetatable

local tool_of = {
  __index = function(space, tool)
    local namespace = rawget(space, 0)
    if type(tool) ~= "string" or not has(namespace, tool) then return nil end
    local invoke = bind(namespace, tool)
    rawset(space, tool, invoke)
    return invoke
  end,
  __name = "mcp.namespace",
}

setmetatable(mcp, {
  __index = function(_, namespace)
    if type(namespace) ~= "string" or namespace == "" then return nil end
    local found
    if has(namespace) then
      found = setmetatable({ [0] = namespace }, tool_of)
    elseif has("", namespace) then -- a tool of our own, or a published script
      found = bind("", namespace)
    end
    rawset(mcp, namespace, found)
    return found
  end,
})
