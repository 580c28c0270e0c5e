// The same music in TypeScript: types are stripped, lines stay right.
interface Params { input_hash: string; semitones: number; grid: number }

function describe() {
  return {
    name: 'transpose',
    description: 'Transpose a stored MIDI file and quantize it',
    params: {
      input_hash: { type: 'string', required: true, description: 'the file in the store' },
      semitones: { type: 'integer', default: 7, min: -48, max: 48 },
      grid: { type: 'integer', default: 240, min: 0, description: 'in ticks; 0 leaves the times alone' },
    },
    returns: 'hash of the new file',
  };
}

async function main({ input_hash, semitones, grid }: Params) {
  const info = await mcp.hootenanny.cas_inspect({ hash: input_hash });
  const song = midi.read(info.local_path);
  midi.transpose(song.events, semitones);
  midi.quantize(song.events, grid);

  const path: string = temp.path('output.mid');
  midi.write(path, song);
  const stored = await mcp.hootenanny.cas_upload_file({ file_path: path, mime_type: 'audio/midi' });
  return { hash: stored.hash, events: song.events.length };
}
