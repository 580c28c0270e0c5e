-- Bodies are arbitrary bytes, which tables passed to the host cannot contain: so
-- they are passed separately.
local send = http.request
local encode = json.encode
local type, error, pairs, tostring = type, error, pairs, tostring
local lower = string.lower

local function has(headers, name)
  for key in pairs(headers) do
    if lower(key) == name then return true end
  end
  return false
end

local function ask(what)
  local headers, body = {}, what.body
  for name, value in pairs(what.headers or {}) do headers[name] = tostring(value) end
  if type(body) == "table" then
    body = encode(body)
    if not has(headers, "content-type") then headers["content-type"] = "application/json" end
  end
  local method = what.method or (body and "POST" or "GET")
  local status, answered, text, url = send(method, what.url, headers, body, what.timeout_ms)
  if type(status) == "table" then return status end -- made up in a preview
  return { status = status, headers = answered, body = text, url = url }
end

function http.request(what)
  if type(what) == "string" then what = { url = what } end
  if type(what) ~= "table" then
    error("bad argument #1 to 'request' (table expected, got " .. type(what) .. ")", 2)
  end
  if type(what.url) ~= "string" then error("bad argument #1 to 'request' (its url is missing)", 2) end
  return ask(what)
end

function http.get(url, headers)
  if type(url) ~= "string" then error("bad argument #1 to 'get' (string expected, got " .. type(url) .. ")", 2) end
  return ask { url = url, headers = headers, method = "GET" }
end

function http.post(url, body, headers)
  if type(url) ~= "string" then error("bad argument #1 to 'post' (string expected, got " .. type(url) .. ")", 2) end
  return ask { url = url, body = body or "", headers = headers, method = "POST" }
end

http_request = http.request
