-- io on top of fs: a file is read whole when it is opened and saved whole when it
-- is flushed or closed, so that every effect is one the door can see.
local read, write, append, remove = fs.read, fs.write, fs.append, fs.remove
local exists = fs.exists
local type, error, select, pcall = type, error, select, pcall
local tonumber, tostring, getmetatable, setmetatable = tonumber, tostring, getmetatable, setmetatable
local put, end_line = __write, __end_line
local pairs = pairs
local gsub = string.gsub
local find, sub, match, rep = string.find, string.sub, string.match, string.rep
local concat, unpack = table.concat, table.unpack

local at_end = fs.__at_end
fs.__at_end = nil

local opened = {} -- the files that may have something to save

local File = { __name = "FILE*" }
File.__index = File

local function check(file)
  if file.closed then error("attempt to use a closed file", 3) end
end

-- Puts what was written at the end, piece by piece, into the text.
local function settle(file)
  if file.waiting > 0 then
    file.text = file.text .. concat(file.pieces)
    file.pieces, file.waiting = {}, 0
  end
end

-- The next piece by one read format, and where the next begins.
local function take(file, fmt)
  settle(file)
  local text, at = file.text, file.at
  if type(fmt) == "number" then
    if at > #text then return nil end
    file.at = at + fmt
    return sub(text, at, at + fmt - 1)
  end
  fmt = match(fmt, "^%*?(.)")
  if fmt == "a" then
    file.at = #text + 1
    return sub(text, at)
  elseif fmt == "l" or fmt == "L" then
    if at > #text then return nil end
    local stop = find(text, "\n", at, true)
    file.at = (stop or #text) + 1
    return sub(text, at, stop and (fmt == "L" and stop or stop - 1) or #text)
  elseif fmt == "n" then
    local first, last = find(text, "^%s*[+-]?[%w%.]+[+-]?%w*", at)
    if not first then return nil end
    file.at = last + 1
    return tonumber(sub(text, first, last))
  end
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

function File:write(...)
  check(self)
  if not self.writable then return nil, "file is not open for writing", 9 end
  for i = 1, select("#", ...) do
    local piece = select(i, ...)
    if type(piece) == "number" then piece = piece .. "" end
    if type(piece) ~= "string" then
      error("bad argument #" .. i .. " to 'write' (string expected, got " .. type(piece) .. ")", 2)
    end
    if self.appending then
      self.added[#self.added + 1] = piece
    elseif self.at == #self.text + self.waiting + 1 then
      self.pieces[#self.pieces + 1] = piece
      self.waiting = self.waiting + #piece
      self.at = self.at + #piece
    else
      settle(self)
      local at, text = self.at, self.text
      if at > #text + 1 then text = text .. rep("\0", at - #text - 1) end
      self.text = sub(text, 1, at - 1) .. piece .. sub(text, at + #piece)
      self.at = at + #piece
    end
    self.dirty = true
  end
  return self
end

function File:flush()
  check(self)
  if self.dirty then
    if self.appending then
      append(self.path, concat(self.added))
      self.added = {}
    else
      settle(self)
      write(self.path, self.text)
    end
    self.dirty = false
  end
  return self
end

function File:seek(whence, offset)
  check(self)
  settle(self)
  local base = ({ set = 0, cur = self.at - 1, ["end"] = #self.text })[whence or "cur"]
  if not base then error("bad argument #1 to 'seek' (invalid option '" .. tostring(whence) .. "')", 2) end
  local at = base + (offset or 0)
  if at < 0 then return nil, "Invalid argument", 22 end
  self.at = at + 1
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

-- A problem in the words of io: the path, then what is wrong, then a number.
local function refused(path, problem, number)
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
  local file = setmetatable({ path = path, at = 1, text = "", pieces = {}, waiting = 0 }, File)
  file.readable = kind == "r" or plus == "+"
  file.writable = kind ~= "r" or plus == "+"
  if kind == "r" or (kind == "a" and exists(path)) then
    local ok, text = pcall(read, path)
    if not ok then return refused(path, text, 2) end
    file.text = text
  end
  if kind == "a" then
    file.appending, file.added = true, {}
  elseif kind == "w" then
    local ok, problem = pcall(write, path, "")
    if not ok then return refused(path, problem, 13) end
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
