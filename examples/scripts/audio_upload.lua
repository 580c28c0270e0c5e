-- Checks a sound, uploads it to a service, and asks the service what it got.
function describe()
  return {
    name = "audio_upload",
    description = "Upload a stored WAV file over HTTP",
    params = {
      input_hash = { type = "string", required = true, description = "the file in the store" },
      url = { type = "string", required = true, description = "where a POST creates a file; its host must be in scripts.http_hosts" },
      max_seconds = { type = "number", default = 600, min = 0 },
    },
    returns = "what the service answered",
  }
end

-- Sends a request again while the service says that it is busy.
local function send(request)
  for attempt = 1, 4 do
    local answer = http.request(request)
    if answer.status < 500 and answer.status ~= 429 then return answer end
    if attempt == 4 then error("the service answers " .. answer.status .. ": " .. answer.body:sub(1, 200)) end
    clock.sleep(2 ^ attempt)
  end
end

function main(params)
  local path = cas.path(params.input_hash)
  local info = audio.info(path)
  if info.is_silent then error("the file is silent") end
  if info.duration > params.max_seconds then
    error(("the file lasts %.0f seconds; the service takes %.0f"):format(info.duration, params.max_seconds))
  end

  local content = fs.read(path)
  local answer = send { url = params.url, method = "POST", body = content, headers = { ["Content-Type"] = "audio/wav" } }
  if answer.status >= 300 then error("the service refused the file: " .. answer.status .. " " .. answer.body:sub(1, 200)) end
  local created = json.decode(answer.body)
  return { uploaded = created, bytes = #content, duration = info.duration }
end
