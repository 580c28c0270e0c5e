-- io on top of fs: a file is read and written in parts. The Handler sees each part
-- as an effect. A position counts from 0, as seek does.
local read, write, append, exists, size = fs.read, fs.write, fs.append, fs.exists, fs.size
local type, error, select, pcall = type, error, select, pcall
local tonumber, tostring, getmetatable, setmetatable = tonumber, tostring, getmetatable, setmetatable
local put, end_line = __write, __end_line
local pairs = pairs
local gsub = string.gsub
local find, sub, match = string.find, string.sub, string.match
local concat, unpack = table.concat, table.unpack

local at_end = fs.__at_end
fs.__at_end = nil

local first_part, next_part = 64 * 1024, 1024 * 1024 -- sizes of reads
local full = 1024 * 1024 -- size of writes

local opened = {} -- files that may have unsaved data

local File = { __name = "FILE*" }
File.__index = File

local function check(file)
  if file.closed then error("attempt to use a closed file", 3) end
end

-- Returns the size of the file on disk.
local function saved(file)
  if not file.saved then file.saved = size(file.path) end
  return file.saved
end

-- Saves what was written since the last save, beginning at file.start.
local function save(file)
  if file.waiting == 0 then return end
  local data, start = concat(file.pieces), file.start
  file.pieces, file.waiting = {}, 0
  if file.fresh and start == 0 then
    write(file.path, data)
    file.saved = #data
  elseif file.appending or start == saved(file) then
    append(file.path, data)
    file.saved = saved(file) + #data
  else
    write(file.path, data, start)
    if start + #data > saved(file) then file.saved = start + #data end
  end
  file.fresh = false
end

-- Returns the buffered part of the file from the position on, or reads the next
-- part. An empty string means the end.
local function ahead(file)
  save(file)
  local from = file.at - file.from
  if from < 0 or from >= #file.part then
    local count = file.asked and next_part or first_part
    file.part, file.from, file.asked, from = read(file.path, file.at, count), file.at, true, 0
  end
  return from == 0 and file.part or sub(file.part, from + 1)
end

local function take_bytes(file, count)
  local parts, missing = {}, count
  repeat
    local part = ahead(file)
    if part == "" then break end
    if #part > missing then part = sub(part, 1, missing) end
    parts[#parts + 1] = part
    file.at, missing = file.at + #part, missing - #part
  until missing <= 0
  if #parts == 0 then return nil end
  return concat(parts)
end

local function take_all(file)
  local parts = {}
  while true do
    local part = ahead(file)
    if part == "" then return concat(parts) end
    parts[#parts + 1] = part
    file.at = file.at + #part
  end
end

-- Searches lines in the buffered part, without copying the rest of it.
local function take_line(file, keep)
  local parts
  while true do
    save(file)
    local from = file.at - file.from
    if from < 0 or from >= #file.part then
      if ahead(file) == "" then return parts and concat(parts) end
      from = 0
    end
    local stop = find(file.part, "\n", from + 1, true)
    if stop then
      file.at = file.from + stop
      local line = sub(file.part, from + 1, keep and stop or stop - 1)
      if not parts then return line end
      parts[#parts + 1] = line
      return concat(parts)
    end
    parts = parts or {}
    parts[#parts + 1] = sub(file.part, from + 1)
    file.at = file.from + #file.part
  end
end

local function take_number(file)
  local begin = file.at
  local text = ""
  repeat -- white space, and then 200 bytes, in which a number ends
    local part = take_bytes(file, 256)
    text = text .. (part or "")
    local blank = match(text, "^%s*()")
  until not part or #text - blank >= 200
  local first, last = find(text, "^%s*[+-]?[%w%.]+[+-]?%w*")
  if not first then
    file.at = begin
    return nil
  end
  file.at = begin + last
  return tonumber(sub(text, first, last))
end

-- Reads the next piece in one read format.
local function take(file, fmt)
  if type(fmt) == "number" then
    if fmt <= 0 then return ahead(file) ~= "" and "" or nil end
    return take_bytes(file, fmt)
  end
  fmt = match(fmt, "^%*?(.)")
  if fmt == "a" then return take_all(file) end
  if fmt == "l" or fmt == "L" then return take_line(file, fmt == "L") end
  if fmt == "n" then return take_number(file) end
  error("bad argument #1 to 'read' (invalid format)", 3)
end

function File:read(...)
  check(self)
  if not self.readable then return nil, "file is not open for reading", 9 end
  local count = select("#", ...)
  if count == 0 then return take(self, "l") end
  local out = {}
  for i = 1, count do
    out[i] = take(self, (select(i, ...)))
    if out[i] == nil then return unpack(out, 1, i) end
  end
  return unpack(out, 1, count)
end

function File:lines(...)
  check(self)
  local formats, count = { ... }, select("#", ...)
  return function()
    if count == 0 then return self:read("l") end
    return self:read(unpack(formats, 1, count))
  end
end

local function add(file, piece)
  if file.waiting > 0 and not file.appending and file.at ~= file.start + file.waiting then save(file) end
  if file.waiting == 0 then file.start = file.at end
  file.pieces[#file.pieces + 1] = piece
  file.waiting = file.waiting + #piece
  file.at = file.appending and saved(file) + file.waiting or file.at + #piece
  file.part, file.from = "", 0 -- may be outdated now
  if file.waiting >= full then save(file) end
end

function File:write(...)
  check(self)
  if not self.writable then return nil, "file is not open for writing", 9 end
  for i = 1, select("#", ...) do
    local piece = select(i, ...)
    if type(piece) == "number" then piece = piece .. "" end
    if type(piece) ~= "string" then
      error("bad argument #" .. i .. " to 'write' (string expected, got " .. type(piece) .. ")", 2)
    end
    add(self, piece)
  end
  return self
end

function File:flush()
  check(self)
  save(self)
  return self
end

function File:seek(whence, offset)
  check(self)
  whence = whence or "cur"
  local base = whence == "set" and 0 or whence == "cur" and self.at
  if whence == "end" then
    save(self)
    base = saved(self)
  end
  if not base then error("bad argument #1 to 'seek' (invalid option '" .. tostring(whence) .. "')", 2) end
  local at = base + (offset or 0)
  if at < 0 then return nil, "Invalid argument", 22 end
  self.at = at
  return at
end

function File:setvbuf() return true end

function File:close()
  check(self)
  self:flush()
  self.closed = true
  opened[self] = nil
  return true
end

File.__close = function(self) if not self.closed then self:close() end end
File.__tostring = function(self) return self.closed and "file (closed)" or "file (" .. self.path .. ")" end

io = {}

-- Converts a problem to the results of io: nil, the path with the message, and a number.
local function refused(path, problem, number)
  problem = tostring(problem)
  problem = match(problem, "^%a+ " .. gsub(path, "%p", "%%%0") .. ": (.*)") or problem
  if sub(problem, 1, #path) ~= path then problem = path .. ": " .. problem end
  return nil, problem, number
end

function io.open(path, mode)
  if type(path) ~= "string" then
    error("bad argument #1 to 'open' (string expected, got " .. type(path) .. ")", 2)
  end
  mode = mode or "r"
  local kind, plus = match(mode, "^([rwa])(%+?)b?$")
  if not kind then error("bad argument #2 to 'open' (invalid mode)", 2) end
  local file = setmetatable({ path = path, at = 0, part = "", from = 0, pieces = {}, waiting = 0 }, File)
  file.readable = kind == "r" or plus == "+"
  file.writable = kind ~= "r" or plus == "+"
  if kind == "r" then
    local ok, problem = pcall(ahead, file)
    if not ok then return refused(path, problem, 2) end
  elseif kind == "w" then
    local ok, problem = pcall(write, path, "")
    if not ok then return refused(path, problem, 13) end
    file.fresh, file.saved = true, 0
  else
    file.appending = true
    if not exists(path) then file.fresh, file.saved = true, 0 end
    file.at = saved(file)
  end
  if file.writable then opened[file] = true end
  return file
end

function io.lines(path, ...)
  local file, problem = io.open(path, "r")
  if not file then error(problem, 2) end
  return file:lines(...)
end

function io.type(value)
  if type(value) == "table" and getmetatable(value) == File then
    return value.closed and "closed file" or "file"
  end
  return nil
end

function io.write(...)
  local parts = { ... }
  for i = 1, select("#", ...) do
    if type(parts[i]) ~= "string" and type(parts[i]) ~= "number" then
      error("bad argument #" .. i .. " to 'write' (string expected, got " .. type(parts[i]) .. ")", 2)
    end
  end
  put(concat(parts))
  return io
end

at_end(function()
  end_line()
  for file in pairs(opened) do
    if not file.closed then file:flush() end
  end
end)
