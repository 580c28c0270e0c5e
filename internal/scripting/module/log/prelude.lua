-- Values are formatted as one line, as print does.
local line = __line

for _, level in ipairs { "debug", "info", "warn", "error" } do
  local say = log[level]
  log[level] = function(...) say(line(...)) end
end
