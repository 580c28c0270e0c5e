-- Lua's own date and time functions, with the time of the run's clock.
local now, date, time = os.__now, os.date, os.time
os.__now = nil
local floor = math.floor
local first

function os.time(fields)
  if fields == nil then return floor(now()) end
  return time(fields)
end

function os.date(format, at)
  return date(format or "%c", at or floor(now()))
end

function os.clock()
  local t = now()
  first = first or t
  return t - first
end
