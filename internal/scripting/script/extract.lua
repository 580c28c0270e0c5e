-- Writes a function of a session down as a script that runs by itself, with the
-- globals, tables, functions and shared variables it uses. It is given the sources
-- of the turns that defined functions, the names every script has, and the name
-- under which the script is kept; same tells whether two functions have one text.
-- With fn, that function is written down, whatever its name is.
local turns, standard, wanted, same, debug, fn = ...
local next, type, tostring, rawget, ipairs = next, type, tostring, rawget, ipairs
local getinfo, getupvalue, upvalueid = debug.getinfo, debug.getupvalue, debug.upvalueid
local format, find, match, sub, gsub, gmatch, rep = string.format, string.find, string.match, string.sub, string.gsub, string.gmatch, string.rep
local concat, sort, mathtype, load = table.concat, table.sort, math.type, load
local G, null = _G, json.null

local warnings = {}
local function warn(text) warnings[#warnings + 1] = text end

local identifier = "^[%a_][%w_]*$"
local keyword = {}
for word in gmatch("and break do else elseif end false for function goto if in local nil not or repeat return then true until while", "%a+") do keyword[word] = true end
local function plain_name(k) return type(k) == "string" and find(k, identifier) and not keyword[k] end

-- What every script has, by the path it is found under.
local path_of = {}
local function name_paths(t, prefix, depth)
  for k, v in next, t do
    if plain_name(k) and (type(v) == "function" or type(v) == "table") and v ~= G and not path_of[v] then
      path_of[v] = prefix .. k
      if type(v) == "table" and depth < 3 then name_paths(v, prefix .. k .. ".", depth + 1) end
    end
  end
end
for name in next, standard do
  local v = rawget(G, name)
  if (type(v) == "function" or type(v) == "table") and v ~= G then
    local own = type(v) == "function" and turns[match(getinfo(v, "S").source, "^=(.*)$") or ""]
    if not own then
      path_of[v] = name
      if type(v) == "table" then name_paths(v, name .. ".", 1) end
    end
  end
end
path_of[G] = "_G"

-- Where the functions written in a source begin and end.
local function spans(source)
  local found, open, at, line = {}, {}, 1, 1
  local function skip(to) -- counts the lines up to there
    for _ in gmatch(sub(source, at, to), "\n") do line = line + 1 end
    at = to + 1
  end
  while at <= #source do
    local long = match(source, "^%-%-%[(=*)%[", at) or match(source, "^%[(=*)%[", at)
    if long then
      local _, stop = find(source, "]" .. long .. "]", at, true)
      skip(stop or #source)
    elseif find(source, "^%-%-", at) then
      skip((find(source, "\n", at, true) or #source + 1) - 1)
    elseif find(source, "^[\"']", at) then
      local quote, to = sub(source, at, at), at + 1
      while to <= #source and sub(source, to, to) ~= quote do
        if sub(source, to, to) == "\\" then to = to + 1 end
        to = to + 1
      end
      skip(to)
    else
      local word = match(source, "^[%a_][%w_]*", at) or match(source, "^%.?%d[%w%.]*", at)
      if word == "function" then
        open[#open + 1] = { first = at, line = line }
      elseif word == "if" or word == "do" or word == "repeat" then
        open[#open + 1] = {}
      elseif (word == "end" or word == "until") and #open > 0 then
        local block = open[#open]
        open[#open] = nil
        if block.first then
          block.last, block.last_line = at + 2, line
          found[#found + 1] = block
        end
      end
      skip(at + (word and #word or 1) - 1)
    end
  end
  return found
end

-- Whether an expression is the source of a function.
local function is_source(text, f)
  local around = {}
  for i = 1, 255 do
    local name = getupvalue(f, i)
    if not name then break end
    if name ~= "_ENV" then around[#around + 1] = name end
  end
  local chunk = load((#around > 0 and "local " .. concat(around, ", ") .. " " or "") .. "return " .. text)
  return chunk and same(chunk(), f)
end

-- The source of a function as an expression, or nil.
local texts = {}
local function text_of(f)
  if texts[f] ~= nil then return texts[f] or nil end
  local info = getinfo(f, "S")
  local source = turns[match(info.source, "^=(.*)$") or ""]
  local text = false
  for _, span in ipairs(source and spans(source) or {}) do
    if span.line == info.linedefined and span.last_line == info.lastlinedefined then
      local name, params, rest = match(sub(source, span.first, span.last), "^function%s*([%w_%.:%s]-)%s*(%b())(.*)$")
      params = params and match(params, "^%(%s*(.-)%s*%)$")
      if params and find(name, ":", 1, true) then params = params == "" and "self" or "self, " .. params end
      local candidate = params and "function(" .. params .. ")" .. rest
      if candidate and not text and is_source(candidate, f) then text = candidate end
    end
  end
  texts[f] = text
  return text or nil
end

-- What is reached from where the script begins.
local globals, functions, tables, order = {}, {}, {}, {}
local todo = {}
local function reach(v)
  if type(v) == "function" and not path_of[v] and not functions[v] then
    functions[v] = true
    order[#order + 1], todo[#todo + 1] = v, v
  elseif type(v) == "table" and not path_of[v] and not tables[v] then
    tables[v] = true
    todo[#todo + 1] = v
  end
end
local function reach_global(name)
  local v = rawget(G, name)
  if v == nil or globals[name] or path_of[v] == name or v == G then return end
  if standard[name] and type(v) ~= "function" and type(v) ~= "table" then return end
  globals[name] = true
  reach(v)
end

local entry = type(rawget(G, wanted)) == "function" and not standard[wanted] and wanted or "main"
if not fn and type(rawget(G, entry)) ~= "function" then
  return { problem = "the session has neither a function " .. wanted .. " nor a function main" }
end
if not text_of(fn or rawget(G, entry)) then
  return { problem = "the source of " .. (fn and "the function is not known" or entry .. " is not known: define it again in this session") }
end
if fn then
  reach(fn)
else
  reach_global(entry)
  reach_global("describe")
end
while #todo > 0 do
  local v = todo[#todo]
  todo[#todo] = nil
  if type(v) == "table" then
    for k, x in next, v do reach(k) reach(x) end
    reach(debug.getmetatable(v))
  else
    local text = text_of(v)
    for word in gmatch(text or "", "[%a_][%w_]*") do
      if not keyword[word] then reach_global(word) end
    end
    for i = 1, 255 do
      local name, x = getupvalue(v, i)
      if not name then break end
      if name ~= "_ENV" then reach(x) end
    end
  end
end

-- Values as expressions. Tables that are more than plain data, and functions, are
-- made first and named by number.
local numbers, tables_made, made, fills, later = {}, 0, {}, {}, {}
local function scalar(v)
  if v == nil or type(v) == "boolean" then return tostring(v) end
  if mathtype(v) == "integer" then return v == math.mininteger and "math.mininteger" or tostring(v) end
  if type(v) == "number" then return v ~= v and "(0/0)" or format("%q", v) end
  if type(v) == "string" then return (gsub(format("%q", v), "\\\n", "\\n")) end
end
local function data(t, seen) -- whether a table is plain data that nothing else holds
  if seen[t] or path_of[t] or debug.getmetatable(t) ~= nil then return false end
  seen[t] = true
  for k, v in next, t do
    if type(k) ~= "string" and mathtype(k) ~= "integer" then return false end
    if type(v) == "table" then
      if not data(v, seen) then return false end
    elseif v ~= null and scalar(v) == nil then
      return false
    end
  end
  return true
end
local ref
local function literal(t, indent)
  local parts, length = {}, #t
  local inner = indent .. "  "
  for i = 1, length do parts[i] = type(t[i]) == "table" and literal(t[i], inner) or ref(t[i]) end
  for k, v in next, t do
    if not (mathtype(k) == "integer" and k >= 1 and k <= length) then
      local value = type(v) == "table" and literal(v, inner) or ref(v)
      parts[#parts + 1] = (plain_name(k) and k or "[" .. scalar(k) .. "]") .. " = " .. value
    end
  end
  if #parts == 0 then return "{}" end
  local line = "{ " .. concat(parts, ", ") .. " }"
  if #line < 90 then return line end
  return "{\n" .. inner .. concat(parts, ",\n" .. inner) .. ",\n" .. indent .. "}"
end
-- What every script has is named. A script's top level must not look for tools, so
-- those are looked for when they are used.
local function standard_value(v)
  local path = path_of[v]
  if sub(path, 1, 4) ~= "mcp." or path == "mcp.call" then return path end
  if type(v) == "function" then return "function(...) return " .. path .. "(...) end" end
  return "setmetatable({}, { __index = function(_, tool) return " .. path .. "[tool] end })"
end

local where = "a value"
function ref(v)
  if v == null then return "json.null" end
  local text = scalar(v)
  if text then return text end
  if path_of[v] then return standard_value(v) end
  if numbers[v] then return numbers[v] end
  if type(v) == "table" then
    tables_made = tables_made + 1
    local name = "_tables[" .. tables_made .. "]"
    numbers[v] = name
    made[#made + 1] = name .. " = {}"
    for k, x in next, v do fills[#fills + 1] = name .. (plain_name(k) and "." .. k or "[" .. ref(k) .. "]") .. " = " .. ref(x) end
    local meta = debug.getmetatable(v)
    if meta then fills[#fills + 1] = "setmetatable(" .. name .. ", " .. ref(meta) .. ")" end
    return name
  end
  warn(where .. " is a " .. type(v) .. ", which a script cannot hold: it is left out")
  return "nil"
end

-- Functions that share a variable are written in one block, around it.
local block_of, holders = {}, {}
for _, f in ipairs(order) do
  local block = block_of[f] or { f }
  block_of[f] = block
  for i = 1, 255 do
    local name = getupvalue(f, i)
    if not name then break end
    local id = name ~= "_ENV" and upvalueid(f, i)
    local other = id and holders[id]
    if other and other ~= block then
      for _, g in ipairs(block) do other[#other + 1] = g block_of[g] = other end
      block = other
    elseif id then
      holders[id] = block
    end
  end
end

local named = {} -- the global each function is best known by
for name in next, globals do
  local v = rawget(G, name)
  if functions[v] and (not named[v] or name < named[v]) then named[v] = name end
end
local count = 0
for _, f in ipairs(order) do
  if text_of(f) then
    if named[f] then
      numbers[f] = named[f]
    else
      count = count + 1
      numbers[f] = "_functions[" .. count .. "]"
    end
  else
    warn((named[f] or "a function") .. " is left out: its source is not known")
    numbers[f] = "nil"
  end
end

local blocks, done = {}, {}
for _, first in ipairs(order) do
  local block = block_of[first]
  if not done[block] then
    done[block] = true
    local names, values, ids, lines = {}, {}, {}, {}
    for _, f in ipairs(block) do
      for i = 1, 255 do
        local name, x = getupvalue(f, i)
        if not name then break end
        local id = name ~= "_ENV" and upvalueid(f, i)
        if id and not ids[id] then
          if values[name] ~= nil then
            warn("two different variables are called " .. name .. ": they are one in the script")
          else
            names[#names + 1], values[name] = name, { x }
          end
          ids[id] = true
        end
      end
    end
    for _, name in ipairs(names) do
      local x = values[name][1]
      where = "the variable " .. name
      if scalar(x) or x == null or path_of[x] then
        lines[#lines + 1] = "local " .. name .. " = " .. ref(x)
      elseif type(x) == "table" and not numbers[x] and data(x, {}) then
        lines[#lines + 1] = "local " .. name .. " = " .. literal(x, "  ")
      else
        lines[#lines + 1] = "local " .. name
        later[#later + 1] = true
        lines[#lines + 1] = "_later[" .. #later .. "] = function() " .. name .. " = " .. ref(x) .. " end"
      end
    end
    for _, f in ipairs(block) do
      local text = text_of(f)
      if text and named[f] then
        lines[#lines + 1] = "function " .. named[f] .. sub(text, #"function" + 1)
      elseif text then
        lines[#lines + 1] = numbers[f] .. " = " .. text
      end
    end
    blocks[#blocks + 1] = #names > 0 and "do\n  " .. concat(lines, "\n  ") .. "\nend" or concat(lines, "\n\n")
  end
end

local sorted, assigned = {}, {}
for name in next, globals do sorted[#sorted + 1] = name end
sort(sorted)
for _, name in ipairs(sorted) do
  local v = rawget(G, name)
  where = name
  if named[v] == name then
    -- written with the functions
  elseif type(v) == "table" and not numbers[v] and data(v, {}) then
    numbers[v] = name
    assigned[#assigned + 1] = name .. " = " .. literal(v, "")
  else
    local value = ref(v)
    if value ~= "nil" then assigned[#assigned + 1] = name .. " = " .. value end
  end
end

local out = {}
local function add(list, separator) if #list > 0 then out[#out + 1] = concat(list, separator or "\n") end end
local locals = {}
if #made > 0 then locals[#locals + 1] = "local _tables = {}" end
if count > 0 then locals[#locals + 1] = "local _functions = {}" end
if #later > 0 then locals[#locals + 1] = "local _later = {}" end
add(locals)
add(made)
if not globals.describe then
  out[#out + 1] = "function describe()\n  return { name = " .. scalar(wanted) .. ", description = " .. scalar("Saved from a session.") .. " }\nend"
end
add(blocks, "\n\n")
add(assigned)
add(fills)
if #later > 0 then out[#out + 1] = "for i = 1, #_later do _later[i]() end" end
if fn then entry = numbers[fn] end
if entry ~= "main" and globals.main then return { problem = "the function uses the global main, which is also the name of the script's own function" } end
if entry ~= "main" then out[#out + 1] = "function main(params)\n  return " .. entry .. "(params)\nend" end
return { source = concat(out, "\n\n") .. "\n", warnings = json.array(warnings) }
