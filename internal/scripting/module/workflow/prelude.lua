workflow = {}
local tools = mcp
local type, error, pairs = type, error, pairs

local function backend()
  local space = tools.hootenanny
  if not space then error("the music backend is not connected: there is no namespace hootenanny", 3) end
  return space
end

local function check(value, kind, position, name)
  if type(value) ~= kind then
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. kind .. " expected, got " .. type(value) .. ")", 3)
  end
end

-- Returns the result of a job that has ended.
local function outcome(job)
  if job.status == "failed" or job.status == "cancelled" then
    local reason = job.error
    if type(reason) == "table" then reason = reason.message end
    error("job " .. job.job_id .. " " .. job.status .. (reason and ": " .. reason or ""), 0)
  end
  return job.result
end

-- The backend waits at most 30 seconds per call, so this polls repeatedly.
local function wait(id, timeout)
  local left, step = timeout, 30000
  while true do
    local polled = backend().job_poll { job_ids = { id }, timeout_ms = left < step and left or step, mode = "all" }
    if #polled.pending == 0 then
      return outcome(backend().job_status { job_id = id })
    end
    left = left - step
    if left <= 0 then error("job " .. id .. " has not ended after " .. timeout .. " ms", 0) end
  end
end

function workflow.wait_job(id, timeout)
  check(id, "string", 1, "wait_job")
  timeout = timeout or 60000
  check(timeout, "number", 2, "wait_job")
  return wait(id, timeout)
end

-- Returns a copy of params without the named fields.
local function without(params, ...)
  local copy = {}
  for k, v in pairs(params) do copy[k] = v end
  for _, name in pairs { ... } do copy[name] = nil end
  return copy
end

local default_timeout = 120000

-- Runs a tool that starts a job, and waits for the job.
local function finish(tool, params, timeout)
  local started = backend()[tool](params)
  return wait(started.job_id, timeout or default_timeout)
end

local function generate(params)
  return finish("orpheus_generate", without(params, "soundfont_hash", "sample_rate", "gain", "normalize", "timeout_ms"), params.timeout_ms)
end

function workflow.orpheus_generate(params)
  params = params or {}
  check(params, "table", 1, "orpheus_generate")
  return generate(params)
end

local function to_wav(midi, font, options)
  return finish("convert_midi_to_wav", {
    input_hash = midi.content_hash, soundfont_hash = font, sample_rate = options.sample_rate,
    gain = options.gain, normalize = options.normalize,
    tags = options.tags, creator = options.creator,
  }, options.timeout_ms)
end

function workflow.orpheus_to_wav(params)
  check(params, "table", 1, "orpheus_to_wav")
  if type(params.soundfont_hash) ~= "string" then error("orpheus_to_wav needs soundfont_hash", 2) end
  local midi = generate(params)
  return { midi = midi, wav = to_wav(midi, params.soundfont_hash, params) }
end

function workflow.abc_to_wav(text, font, options)
  check(text, "string", 1, "abc_to_wav")
  check(font, "string", 2, "abc_to_wav")
  options = options or {}
  check(options, "table", 3, "abc_to_wav")
  local how = without(options, "sample_rate", "gain", "normalize", "timeout_ms")
  how.abc = text
  local midi = backend().abc_to_midi(how)
  local wav = to_wav(midi, font, options)
  wav.midi = midi
  return wav
end
