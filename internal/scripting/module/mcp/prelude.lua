-- Namespaces and tools are created on first access. A name that does not exist
-- reads as nil, so that `if mcp.git then` works and a wrong call is the
-- ordinary "attempt to call a nil value".
local bind, has, list, spaces = mcp.__bind, mcp.has, mcp.tools, mcp.namespaces
mcp.__bind, mcp.__invoke = nil, nil
local type, rawget, rawset, setmetatable, next, ipairs, error = type, rawget, rawset, setmetatable, next, ipairs, error

-- The list in a result: it may have any name, if it is the only one.
local list_names = { "items", "data", "results", "values", "records", "entries", "rows", "objects", "list", "value", "nodes", "edges" }
local function items_of(result)
  if type(result) ~= "table" then return {} end
  for _, name in ipairs(list_names) do
    if type(result[name]) == "table" then return result[name] end
  end
  local found
  for _, value in next, result do
    if type(value) == "table" and value[1] ~= nil then
      if found then return {} end
      found = value
    end
  end
  return found or {}
end

-- Returns an iterator over the items of all pages of a list.
local max_pages = 10000
local function pages_of(invoke, arguments)
  local given = {}
  for name, value in next, arguments or {} do given[name] = value end
  local items, at, page, last = {}, 0, 0, false
  return function()
    while at >= #items do
      if last then return nil end
      local result = invoke(given)
      items, at, page = items_of(result), 0, page + 1
      local token = type(result) == "table" and result.next_page_token
      last = not token or token == ""
      if not last and (token == given.page_token or page == max_pages) then
        error("the list does not end: page " .. page .. " is followed by itself, or there are too many", 2)
      end
      given.page_token = token
    end
    at = at + 1
    return items[at]
  end
end

-- A tool that lists page by page is called like any other, and has an iterator besides.
local function paged(invoke)
  return setmetatable({ pages = function(arguments) return pages_of(invoke, arguments) end }, {
    __call = function(_, ...) return invoke(...) end,
    __name = "mcp.tool",
  })
end

-- What a namespace has besides tools, unless a tool of it has that name: read{ uri = … } and
-- prompt{ name = …, arguments = {} }.
local function offered(namespace, name)
  if name == "read" and has("", "resource_read") then
    return function(arguments) return bind("", "resource_read"){ uri = arguments.uri, server = namespace } end
  elseif name == "prompt" and has("", "prompt_get") then
    return function(arguments)
      return bind("", "prompt_get"){ name = namespace .. "." .. arguments.name, arguments = arguments.arguments }
    end
  end
end

local tool_of = {
  __index = function(space, tool)
    local namespace = rawget(space, 0)
    if type(tool) ~= "string" then return nil end
    local found, name, pages = has(namespace, tool)
    if not found then return offered(namespace, tool) end
    local invoke = bind(namespace, name or tool) -- get_sum may be the tool get-sum
    if pages then invoke = paged(invoke) end
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
