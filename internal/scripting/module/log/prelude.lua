-- Any values make a line, as print makes one.
local line = __line

for _, level in ipairs { "debug", "info", "warn", "error" } do
  local say = log[level]
  log[level] = function(...) say(line(...)) end
end
