-- Handlers are functions of the script, so they are stored here. The host only
-- queues events until the script asks for them.
local want, next_event, keep, may_hook = events.__want, events.__next, events.__keep, events.__hook
events.__want, events.__next, events.__keep, events.__hook = nil, nil, nil, nil
local type, error, pcall, ipairs, tostring = type, error, pcall, ipairs, tostring
local find, sub, gsub, match = string.find, string.sub, string.gsub, string.match
local remove = table.remove
local complain, now = log.error, clock.now

local handlers = {}
local stopped = false

local function check(value, kind, position, name)
  if type(value) ~= kind then
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. kind .. " expected, got " .. type(value) .. ")", 3)
  end
end

-- "artifact_created" means "artifact.created": the subject, then what happened.
local function pattern_of(name)
  if not find(name, "[.*]") then name = gsub(name, "_", ".", 1) end
  if find(name, "*", 1, true) and not match(name, "^[^*]*%*$") then
    error("bad argument #1 to 'on' (a * can only stand at the end of '" .. name .. "')", 3)
  end
  return name
end

local function wants(handler, kind)
  local prefix = match(handler.pattern, "^(.*)%*$")
  if prefix then return sub(kind, 1, #prefix) == prefix end
  return handler.pattern == kind
end

-- Hooks are global functions; on() is another way to define them.
local hooks = {
  mcp_tools = function(fn) on_mcp_tools = fn end,
  tool_call = function(fn) on_tool_call = fn end,
  tool_result = function(fn) on_tool_result = fn end,
}

function on(name, fn)
  check(name, "string", 1, "on")
  check(fn, "function", 2, "on")
  if hooks[name] then
    may_hook()
    hooks[name](fn)
    return function() hooks[name](nil) return true end
  end
  local handler = { pattern = pattern_of(name), fn = fn }
  want(handler.pattern)
  handlers[#handlers + 1] = handler
  return function()
    for i, h in ipairs(handlers) do
      if h == handler then
        remove(handlers, i)
        return true
      end
    end
    return false
  end
end

-- Passes an event to all matching handlers. Returns whether there was one.
local function deliver(e)
  local wanting = {}
  for _, handler in ipairs(handlers) do
    if wants(handler, e.type) then wanting[#wanting + 1] = handler end
  end
  for _, handler in ipairs(wanting) do
    local ok, problem = pcall(handler.fn, e)
    if not ok then complain("on('" .. handler.pattern .. "'): " .. tostring(problem)) end
  end
  return #wanting > 0
end

if keep then keep(deliver) end

-- Handles events until enough(count) or until the time is over. Without a time it waits forever.
local function handle(timeout, name, enough)
  if timeout ~= nil then check(timeout, "number", 1, name) end
  local finish = timeout and now() + timeout
  local count = 0
  while not enough(count) do
    local left = finish and finish - now() or -1
    if finish and left < 0 then left = 0 end
    local e = next_event(left)
    if not e then break end
    if deliver(e) then count = count + 1 end
  end
  return count
end

function events.wait(timeout)
  local count = handle(timeout, "wait", function(count) return count > 0 end)
  local e = count > 0 and next_event(0)
  while e do
    if deliver(e) then count = count + 1 end
    e = next_event(0)
  end
  return count
end

function events.run(timeout)
  stopped = false
  return handle(timeout, "run", function() return stopped end)
end

function events.stop() stopped = true end

events.on, emit = on, events.emit
