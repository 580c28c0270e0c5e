-- Makes a sound ready for others: one loudness, one sample rate.
function describe()
  return {
    name = "audio_prepare",
    description = "Normalize a stored WAV file and resample it",
    params = {
      input_hash = { type = "string", required = true, description = "the file in the store" },
      sample_rate = { type = "integer", default = 48000, min = 8000, max = 192000 },
      peak_db = { type = "number", default = -1, min = -60, max = 0, description = "level of the loudest sample" },
    },
    returns = "hash, duration and level of the new file",
  }
end

function main(params)
  local sound = audio.read_wav(cas.path(params.input_hash))
  sound = audio.resample(sound, params.sample_rate, "high")
  sound = audio.normalize(sound, params.peak_db) -- last, because resampling changes the peak

  local path = audio.write_wav(sound, temp.path("prepared.wav"))
  local stored = mcp.hootenanny.cas_upload_file { file_path = path, mime_type = "audio/wav" }
  local info = audio.info(sound)
  return { hash = stored.hash, sample_rate = info.sample_rate, duration = info.duration, peak_db = info.peak_db }
end
