-- Works on several stems of a song and mixes them; one bad file does not stop the others.
function describe()
  return {
    name = "audio_stems",
    description = "Process stems and mix them to one file",
    params = {
      stems = { type = "array", required = true, description = "list of { hash, gain_db }" },
      sample_rate = { type = "integer", default = 44100, min = 8000, max = 192000 },
    },
    returns = "hash of the mix, what was left out and why",
  }
end

-- A stem at the rate and length of the mix, in stereo.
local function process(stem, rate)
  local sound = audio.to_stereo(audio.read_wav(cas.path(stem.hash)))
  sound = audio.resample(sound, rate)
  if audio.info(sound).is_silent then
    error({ code = "invalid_params", message = "the stem is silent" })
  end
  return audio.fade(audio.normalize(sound, -6), 0.005, 0.05)
end

function main(params)
  local sounds, gains, left_out = {}, {}, json.array {} -- a list also if it stays empty
  for i, stem in ipairs(params.stems) do
    progress((i - 1) / #params.stems, "stem " .. i)
    local ok, sound = pcall(process, stem, params.sample_rate)
    if ok then
      sounds[#sounds + 1], gains[#gains + 1] = sound, stem.gain_db or 0
    else
      left_out[#left_out + 1] = { hash = stem.hash, reason = type(sound) == "table" and sound.message or tostring(sound) }
    end
  end
  if #sounds == 0 then error("none of the stems can be used: " .. left_out[1].reason) end

  local mix = audio.normalize(audio.mix(sounds, gains), -1)
  local stored = mcp.hootenanny.cas_upload_file { file_path = audio.write_wav(mix, temp.path("mix.wav")), mime_type = "audio/wav" }
  progress(1, "mixed")
  return { hash = stored.hash, stems = #sounds, left_out = left_out, duration = audio.duration(mix) }
end
