// A sound is { data, channels, sample_rate }. Its data is a Float32Array or any list of
// numbers. It is passed to the host as packed bytes.
(function (audio, host) {
  const bad = (position, name, wanted, value) => {
    throw new TypeError('bad argument #' + position + " to '" + name + "' (" + wanted + ' expected, got ' + (value === null ? 'null' : typeof value) + ')');
  };
  const isObject = (value) => typeof value === 'object' && value !== null;

  function clip([bytes, channels, sample_rate]) {
    const packed = host.bytes(bytes).slice(); // aligned
    return { data: new Float32Array(packed.buffer), channels, sample_rate };
  }

  // Returns the bytes of a sound's data in either form.
  function bytesOf(data, position, name) {
    if (!isObject(data)) bad(position, name, 'sound with data', data);
    const list = data instanceof Float32Array ? data : Array.from(data);
    list.forEach((v, i) => {
      if (typeof v !== 'number' || !Number.isFinite(v)) {
        throw new TypeError('bad argument #' + position + " to '" + name + "' (sample " + (i + 1) + ' is ' + host.inspect(v) + ')');
      }
    });
    const floats = Float32Array.from(list);
    return new Uint8Array(floats.buffer);
  }

  // Returns a sound as the host expects it: bytes, channels, rate.
  function plain(sound, position, name) {
    if (!isObject(sound)) bad(position, name, 'sound', sound);
    return [bytesOf(sound.data, position, name), sound.channels ?? 1, sound.sample_rate ?? 44100];
  }

  function number(value, otherwise, position, name) {
    value ??= otherwise;
    if (typeof value !== 'number') bad(position, name, 'number', value);
    return value;
  }

  const changed = (name, sound, A, B, Named) => clip(host.__change(name, ...plain(sound, 1, name), { A, B, Named }));

  function joined(name, sounds, gains) {
    if (!Array.isArray(sounds)) bad(1, name, 'list of sounds', sounds);
    const parts = sounds.map((sound) => plain(sound, 1, name));
    const all = new Uint8Array(parts.reduce((sum, [bytes]) => sum + bytes.length, 0));
    let at = 0;
    for (const [bytes] of parts) {
      all.set(bytes, at);
      at += bytes.length;
    }
    const Clips = parts.map(([bytes, Channels, Rate]) => ({ Bytes: bytes.length, Channels, Rate }));
    return clip(host.__join(name, all, { Clips, Gains: gains }));
  }

  const functions = {
    // Returns the sound and the description of the file: [sound, info].
    read_wav(path) {
      const [bytes, channels, rate, info] = host.read_wav(path);
      return [clip([bytes, channels, rate]), info];
    },
    decode(content) {
      const [bytes, channels, rate, info] = host.__decode(content);
      return [clip([bytes, channels, rate]), info];
    },
    write_wav(sound, path, options) {
      host.write_wav(path, ...plain(sound, 1, 'write_wav'), options?.bits);
      return path;
    },
    encode: (sound, options) => host.bytes(host.__encode(...plain(sound, 1, 'encode'), options?.bits)),
    info: (sound) => (typeof sound === 'string' ? host.info(sound) : host.__measure(...plain(sound, 1, 'info'))[0]),
    duration(sound) {
      if (typeof sound === 'string') return host.info(sound).duration;
      const [bytes, channels, rate] = plain(sound, 1, 'duration');
      return bytes.length / 4 / channels / rate;
    },
    peak: (sound) => host.__measure(...plain(sound, 1, 'peak'))[1],
    rms: (sound) => host.__measure(...plain(sound, 1, 'rms'))[2],
    silence: (seconds, rate, channels) => clip(host.silence(seconds, rate, channels)),

    // resample(sound, to, quality?), or with the current rate first: (sound, from, to, quality?).
    resample(sound, from, to, quality) {
      if (typeof to !== 'number') [from, to, quality] = [undefined, from, to];
      if (from !== undefined && isObject(sound)) sound = { ...sound, sample_rate: from };
      return changed('resample', sound, number(to, undefined, 2, 'resample'), 0, quality ?? 'medium');
    },
    to_mono: (sound) => changed('to_mono', sound),
    to_stereo: (sound) => changed('to_stereo', sound),
    trim: (sound, from, to) => changed('trim', sound, number(from, 0, 2, 'trim'), number(to, 1e9, 3, 'trim')),
    pad: (sound, before, after) => changed('pad', sound, number(before, 0, 2, 'pad'), number(after, 0, 3, 'pad')),
    fade: (sound, fadeIn, fadeOut, curve) =>
      changed('fade', sound, number(fadeIn, 0, 2, 'fade'), number(fadeOut, 0, 3, 'fade'), curve ?? 'linear'),
    gain: (sound, db) => changed('gain', sound, number(db, undefined, 2, 'gain')),
    normalize: (sound, db) => changed('normalize', sound, number(db, 0, 2, 'normalize')),
    reverse: (sound) => changed('reverse', sound),
    mix(sounds, gains) {
      if (gains !== undefined && !Array.isArray(gains)) bad(2, 'mix', 'list of decibels', gains);
      return joined('mix', sounds, gains?.length > 0 ? gains : undefined);
    },
    concat: (sounds) => joined('concat', sounds),
  };
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(audio, name, { value, writable: true, configurable: true });
  }
})
