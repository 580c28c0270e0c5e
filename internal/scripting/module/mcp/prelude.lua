-- Namespaces and tools are created on first access. A name that does not exist
-- reads as nil, so that `if mcp.git then` works and a wrong call is the
-- ordinary "attempt to call a nil value".
local bind, has, list, spaces = mcp.__bind, mcp.has, mcp.tools, mcp.namespaces
mcp.__bind, mcp.__invoke = nil, nil
local type, rawget, rawset, setmetatable, next, ipairs = type, rawget, rawset, setmetatable, next, ipairs

local tool_of = {
  __index = function(space, tool)
    local namespace = rawget(space, 0)
    if type(tool) ~= "string" then return nil end
    local found, name = has(namespace, tool)
    if not found then return nil end
    local invoke = bind(namespace, name or tool) -- get_sum may be the tool get-sum
    rawset(space, tool, invoke)
    return invoke
  end,
  -- Not a tool: the error says so, with tools of similar names.
  __call = function(space, ...) return bind("", rawget(space, 0))(...) end,
  __pairs = function(space)
    local tools = {}
    for _, tool in ipairs(list(rawget(space, 0))) do tools[tool.name] = space[tool.name] end
    return next, tools, nil
  end,
  __name = "mcp.namespace",
}

setmetatable(mcp, {
  __name = "mcp",
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
  __pairs = function()
    local found = {}
    for _, name in ipairs(spaces()) do found[name] = mcp[name] end
    return next, found, nil
  end,
})
