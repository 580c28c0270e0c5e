-- A task is a coroutine that the scheduler manages. When it calls a function that
-- waits, the binding starts the call, which is then called a flight, and yields.
-- The scheduler resumes the task whose flight lands first, with the flight's number.
local set_task, flight_of, land, abort, raise =
  parallel.__adopt, parallel.__flight, parallel.__land, parallel.__abort, parallel.__raise
parallel.__adopt, parallel.__flight, parallel.__land, parallel.__abort, parallel.__raise = nil, nil, nil, nil, nil
local create, resume, status, close = coroutine.create, coroutine.resume, coroutine.status, coroutine.close
local running, isyieldable, yield = coroutine.running, coroutine.isyieldable, coroutine.yield
local type, error, ipairs, select, math_type = type, error, ipairs, select, math.type
local setmetatable, getmetatable, tostring = setmetatable, getmetatable, tostring
local pack, unpack, remove = table.pack, table.unpack, table.remove
local floor = math.floor
local list_of = json.array -- also empty lists are lists

local default_limit = 8

local Task = { __name = "task" }
Task.__index = Task
Task.__tostring = function(task) return "task (" .. task.state .. ")" end

local tasks = {}  -- tasks that have not ended, by thread
local flying = {} -- tasks that wait for a flight, by its number
local ready = {}  -- tasks that can continue, in order

-- Makes the tasks ready that wait for a task or a group.
local function wake(thing)
  for _, waiter in ipairs(thing.waiters) do
    if waiter.state == "waiting" then ready[#ready + 1] = waiter end
  end
  thing.waiters = {}
end

-- Records the end of a task in its group, which ends with its last task or a failure.
local function tell(group, task)
  group.left = group.left - 1
  if task.state == "failed" then group.failed = group.failed or task end
  if group.failed or group.left == 0 then
    group.state = "done"
    wake(group)
  end
end

local function settle(task, state)
  task.state = state
  tasks[task.thread] = nil
  set_task(task.thread, false)
  if task.group then tell(task.group, task) end
  wake(task)
end

-- Runs a task until it waits or ends.
local function step(task, ...)
  task.state = "running"
  local results = pack(resume(task.thread, ...))
  if status(task.thread) == "dead" then
    task.results = results
    settle(task, results[1] and "done" or "failed")
    return
  end
  task.state = "waiting"
  local number = flight_of(task.thread)
  if number then
    task.flight = number
    flying[number] = task
  elseif not task.awaits then
    ready[#ready + 1] = task -- the script yielded: other tasks run first
  end
end

local function ended(thing) return thing.state ~= "running" and thing.state ~= "waiting" end

-- Runs ready tasks, from outside any task, until the task or group has ended.
local function drive(thing)
  while not ended(thing) do
    local next_task = remove(ready, 1)
    if next_task then
      if next_task.state == "waiting" then step(next_task) end
    else
      local number = land()
      if not number then error("the task waits for something that cannot happen", 0) end
      local landed = flying[number]
      flying[number] = nil
      if landed then
        landed.flight = nil
        step(landed, number)
      end
    end
  end
end

-- Waits until a task or group has ended, while other tasks run.
local function await(thing)
  local me = tasks[running()]
  if not me or not isyieldable() then return drive(thing) end
  while not ended(thing) do
    thing.waiters[#thing.waiters + 1] = me
    me.awaits = true
    yield()
    me.awaits = nil
  end
end

local function start(group, fn, ...)
  local thread = create(fn)
  local task = setmetatable({ thread = thread, group = group, waiters = {}, children = {}, state = "waiting" }, Task)
  local parent = tasks[running()]
  if parent then parent.children[#parent.children + 1] = task end
  tasks[thread] = task
  set_task(thread, true)
  step(task, ...)
  return task
end

-- Cancels a task that waits, and the tasks it started.
local function cancel(task)
  if task.state ~= "waiting" then return false end
  for _, child in ipairs(task.children) do cancel(child) end
  if task.flight then
    flying[task.flight] = nil
    abort(task.flight)
    task.flight = nil
  end
  close(task.thread)
  settle(task, "cancelled")
  return true
end

-- Returns the results of a task that has ended, or raises its error with a text
-- that identifies the task.
local function outcome(task, which)
  if task.state == "failed" then raise(task.thread, task.results[2], which or "") end
  if task.state == "cancelled" then error("the task was cancelled" .. (which or ""), 0) end
  return unpack(task.results, 2, task.results.n)
end

local function check_task(value, position, name)
  if getmetatable(value) ~= Task then
    error("bad argument #" .. position .. " to '" .. name .. "' (task expected, got " .. type(value) .. ")", 3)
  end
end

local function check(value, kind, position, name)
  if type(value) ~= kind then
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. kind .. " expected, got " .. type(value) .. ")", 3)
  end
end

function parallel.map(list, fn, limit)
  check(list, "table", 1, "map")
  check(fn, "function", 2, "map")
  limit = limit or default_limit
  if math_type(limit) == nil or limit < 1 then
    error("bad argument #3 to 'map' (a number of at least 1 expected, got " .. tostring(limit) .. ")", 2)
  end
  local count = floor(limit < #list and limit or #list)
  local results, taken, at = list_of {}, 0, {}
  local group = { state = count > 0 and "waiting" or "done", waiters = {}, left = count }
  local function work(worker)
    while taken < #list and not group.failed do
      taken = taken + 1
      local i = taken
      at[worker] = i
      results[i] = fn(list[i], i)
    end
  end
  local workers = {}
  while #workers < count and not group.failed do
    local worker = #workers + 1
    workers[worker] = start(group, work, worker)
    workers[worker].number = worker
  end
  if not group.failed then await(group) end
  if group.failed then
    for _, task in ipairs(workers) do cancel(task) end
    outcome(group.failed, " (item " .. at[group.failed.number] .. " of parallel.map)")
  end
  return results
end

function parallel.spawn(fn, ...)
  check(fn, "function", 1, "spawn")
  return start(nil, fn, ...)
end

function parallel.wait(handle)
  check_task(handle, 1, "wait")
  await(handle)
  return outcome(handle)
end

function parallel.wait_all(handles)
  check(handles, "table", 1, "wait_all")
  for _, handle in ipairs(handles) do check_task(handle, 1, "wait_all") end
  for _, handle in ipairs(handles) do await(handle) end
  local results = list_of {}
  for i, handle in ipairs(handles) do
    results[i] = outcome(handle, " (task " .. i .. " of parallel.wait_all)")
  end
  return results
end

function parallel.cancel(handle)
  check_task(handle, 1, "cancel")
  if handle.state == "running" then error("a task cannot cancel itself or its parent", 2) end
  return cancel(handle)
end

function parallel.done(handle)
  check_task(handle, 1, "done")
  return ended(handle)
end

Task.wait, Task.cancel, Task.done = parallel.wait, parallel.cancel, parallel.done
