-- A mastering chain that measures after each step and decides the next by it.
function describe()
  return {
    name = "audio_master",
    description = "Bring a stored WAV file to a loudness, within a ceiling",
    params = {
      input_hash = { type = "string", required = true, description = "the file in the store" },
      loudness_db = { type = "number", default = -14, min = -40, max = -6, description = "mean level" },
      ceiling_db = { type = "number", default = -1, min = -20, max = 0, description = "level that no sample exceeds" },
      fade = { type = "number", default = 0.02, min = 0, max = 10, description = "seconds at both ends" },
    },
    returns = "hash of the new file, the steps with what they measured",
  }
end

local function decibels(x) return x > 0 and 20 * math.log(x, 10) or -math.huge end

function main(params)
  local sound = audio.read_wav(cas.path(params.input_hash))
  if audio.info(sound).is_silent then error("the file is silent: there is nothing to master") end
  local steps = {}
  local function step(name, change, ...)
    sound = change(sound, ...)
    local measured = { step = name, peak_db = decibels(audio.peak(sound)), mean_db = decibels(audio.rms(sound)) }
    otel.event("mastering step", measured)
    steps[#steps + 1] = measured
    return measured
  end

  local now = step("fade", audio.fade, params.fade, params.fade)
  now = step("loudness", audio.gain, params.loudness_db - now.mean_db)
  if now.peak_db > params.ceiling_db then -- loud enough is not possible without clipping
    now = step("ceiling", audio.gain, params.ceiling_db - now.peak_db)
  end

  local path = audio.write_wav(sound, temp.path("master.wav"), { bits = 24 })
  local stored = mcp.hootenanny.artifact_upload {
    file_path = path, mime_type = "audio/wav", creator = "audio_master", tags = { "phase:final" },
  }
  return { artifact_id = stored.artifact_id, hash = stored.content_hash, reached = now.mean_db >= params.loudness_db - 0.1, steps = steps }
end
