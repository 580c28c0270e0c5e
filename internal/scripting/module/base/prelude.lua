-- Globals used here are captured now, so that a script that redefines them does
-- not break these functions.
local say = __print
local type, tostring, ipairs, next, select = type, tostring, ipairs, next, select
local getmetatable, error, pairs = getmetatable, error, pairs
local format, match = string.format, string.match
local concat, sort, pack, is_array = table.concat, table.sort, table.pack, table.is_array
local list_of = json.array -- also empty lists are lists

local function key_text(k)
  if type(k) == "string" and match(k, "^[%a_][%w_]*$") then return k end
  if type(k) == "string" then return format("[%q]", k) end
  return "[" .. tostring(k) .. "]"
end

-- Sorts keys: numbers, then strings, then the rest.
local function sorted_keys(t)
  local keys = {}
  local meta = getmetatable(t)
  if type(meta) == "table" and meta.__pairs then -- the table says itself what it contains
    for k in pairs(t) do keys[#keys + 1] = k end
  else
    for k in next, t do keys[#keys + 1] = k end
  end
  sort(keys, function(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then return ta < tb end
    if ta == "number" or ta == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

local function readable(v, indent, open)
  if type(v) == "string" then return format("%q", v) end
  if type(v) ~= "table" then return tostring(v) end
  local meta = getmetatable(v)
  if type(meta) == "table" and meta.__tostring then return tostring(v) end
  if open[v] then return "<cycle>" end
  local list = is_array(v) and next(v) ~= nil
  local keys = not list and sorted_keys(v)
  if not list and #keys == 0 then return "{}" end
  if #indent > 60 then return "{...}" end
  open[v] = true
  local parts = {}
  local text
  if list then
    for i, x in ipairs(v) do parts[i] = readable(x, indent, open) end
    text = "{" .. concat(parts, ", ") .. "}"
  else
    local deeper = indent .. "  "
    for _, k in ipairs(keys) do
      parts[#parts + 1] = deeper .. key_text(k) .. " = " .. readable(v[k], deeper, open)
    end
    text = "{\n" .. concat(parts, ",\n") .. "\n" .. indent .. "}"
  end
  open[v] = nil
  return text
end

function repr(v) return readable(v, "", {}) end

local function line(...)
  local parts = pack(...)
  for i = 1, parts.n do
    local v = parts[i]
    parts[i] = type(v) == "table" and readable(v, "", {}) or tostring(v)
  end
  return concat(parts, "\t", 1, parts.n)
end

-- Text that io.write wrote after the last newline waits for the rest of its line.
local begun = ""

function print(...)
  local text = line(...)
  if begun ~= "" then
    text = begun .. text
    begun = ""
  end
  say("stdout", text)
end

function eprint(...) say("stderr", line(...)) end
function warn(...) say("stderr", concat({ ... })) end

-- For other preludes: a function that formats values as one line, one that
-- io.write writes with, and one that ends an unfinished line.
__line = line

function __write(text)
  local lines, rest = match(begun .. text, "^(.*)\n(.*)$")
  if lines then
    begun = rest
    say("stdout", lines)
  else
    begun = begun .. text
  end
end

function __end_line()
  if begun ~= "" then
    local text = begun
    begun = ""
    say("stdout", text)
  end
end

local function check(value, kind, position, name)
  if type(value) ~= kind then
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. kind .. " expected, got " .. type(value) .. ")", 3)
  end
end

function map(list, fn)
  check(list, "table", 1, "map")
  check(fn, "function", 2, "map")
  local out = list_of {}
  for i, v in ipairs(list) do out[i] = fn(v, i) end
  return out
end

function filter(list, keep)
  check(list, "table", 1, "filter")
  check(keep, "function", 2, "filter")
  local out = list_of {}
  for i, v in ipairs(list) do
    if keep(v, i) then out[#out + 1] = v end
  end
  return out
end

function reduce(list, fn, ...)
  check(list, "table", 1, "reduce")
  check(fn, "function", 2, "reduce")
  local start, value = 1, ...
  if select("#", ...) == 0 then
    if #list == 0 then error("reduce of an empty list needs a first value", 2) end
    start, value = 2, list[1]
  end
  for i = start, #list do value = fn(value, list[i], i) end
  return value
end
