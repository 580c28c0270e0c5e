-- Reads music from one server, changes it, and passes it to another.
function describe()
  return {
    name = "midi_transpose",
    description = "Transpose a stored MIDI file and quantize it",
    params = {
      input_hash = { type = "string", required = true, description = "the file in the store" },
      semitones = { type = "integer", default = 7, min = -48, max = 48 },
      grid = { type = "integer", default = 240, min = 0, description = "in ticks; 0 leaves the times alone" },
    },
    returns = "hash of the new file",
  }
end

function main(params)
  local info = mcp.hootenanny.cas_inspect { hash = params.input_hash }
  local song = midi.read(info.local_path)
  midi.transpose(song.events, params.semitones)
  midi.quantize(song.events, params.grid)

  local path = temp.path("output.mid")
  midi.write(path, song)
  local stored = mcp.hootenanny.cas_upload_file { file_path = path, mime_type = "audio/midi" }
  return { hash = stored.hash, events = #song.events }
end
