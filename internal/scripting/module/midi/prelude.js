// Each event of a file is one object, which is in both its track's events and the file's
// list of all events. Changing the event changes it in both. When the file is written, the
// lists are compared.
(function (midi, host) {
  const asRead = new WeakMap(); // file → the events it was read with

  const bad = (position, name, wanted, value) => {
    throw new TypeError('bad argument #' + position + " to '" + name + "' (" + wanted + ' expected, got ' + (value === null ? 'null' : typeof value) + ')');
  };
  const isObject = (value) => typeof value === 'object' && value !== null;
  const nearest = (x) => Math.floor(x + 0.5);

  // Calls f with every event and the time of the one before it in the same track.
  function each(events, f) {
    const now = new Map();
    for (const e of events) {
      const track = e.track ?? 1;
      f(e, now.get(track) ?? 0);
      now.set(track, e.time);
    }
  }

  // Gives every event a time: its own, or its delta after the one before it.
  const timed = (events) => each(events, (e, before) => { e.time ??= before + (e.delta ?? 0); });

  // Gives every event the delta its time means.
  const setDeltas = (events) => each(events, (e, before) => { e.delta = e.time - before; });

  // Puts events in order of time, in place; ties stay as they are.
  const inOrder = (events) => events.sort((a, b) => a.time - b.time);

  const allEvents = (tracks) => tracks.flatMap((track) => track.events ?? []);

  function open(score) {
    score.events = inOrder(allEvents(score.tracks));
    asRead.set(score, [...score.events]);
    return score;
  }

  // Reports whether two lists have the same events, in any order.
  function same(a, b) {
    if (a.length !== b.length) return false;
    const count = new Map();
    for (const e of a) count.set(e, (count.get(e) ?? 0) + 1);
    for (const e of b) {
      const left = count.get(e) ?? 0;
      if (left === 0) return false;
      count.set(e, left - 1);
    }
    return true;
  }

  // Returns which of a file's two lists is to be written.
  function byEvents(file) {
    if (!file.events) return false;
    if (!file.tracks) return true;
    const before = asRead.get(file);
    if (before === undefined) return false;
    const tracks = allEvents(file.tracks);
    if (same(file.events, tracks) || same(file.events, before)) return false;
    if (same(tracks, before)) return true;
    throw new Error('both events and tracks of the file were changed, and differently; delete one of them');
  }

  // Distributes events to their tracks.
  function dealt(file) {
    timed(file.events);
    const tracks = Array.from(file.tracks ?? [{}], ({ tail }) => ({ events: [], tail }));
    for (const e of file.events) {
      const i = e.track ?? 1;
      if (!Number.isInteger(i) || i < 1 || i > 65535) {
        throw new Error("an event's track must be a whole number from 1 on, not " + host.inspect(i));
      }
      while (tracks.length < i) tracks.push({ events: [] });
      tracks[i - 1].events.push(e);
    }
    return tracks;
  }

  // Returns what the host writes: the file's own fields and its tracks.
  function plain(file, name, position) {
    if (!isObject(file) || !(file.tracks || file.events)) bad(position, name, 'object with tracks or events', file);
    const tracks = (byEvents(file) ? dealt(file) : file.tracks).map((track, i) => {
      if (!isObject(track) || !Array.isArray(track.events)) throw new Error('track ' + (i + 1) + ' has no list of events');
      return { events: track.events, tail: track.tail };
    });
    const { ticks_per_beat, frames_per_second, ticks_per_frame, running_status, header_extra, trailing, chunks } = file;
    return {
      format: file.format ?? (tracks.length > 1 ? 1 : 0),
      ticks_per_beat, frames_per_second, ticks_per_frame, running_status, header_extra, trailing, chunks, tracks,
    };
  }

  // Returns the list of events of an argument: the argument itself, or that of a file or track.
  function listOf(events, name) {
    if (!isObject(events)) bad(1, name, 'list of events', events);
    if (Array.isArray(events)) return events;
    return events.events ?? allEvents(events.tracks ?? bad(1, name, 'list of events', events));
  }

  const pitched = new Set(['note_on', 'note_off', 'aftertouch']);

  // A note whose start and end fall on the same grid line lasts one step.
  function snap(list, grid) {
    const sounding = new Map(), latest = new Map();
    for (const e of list) {
      const was = e.time, track = e.track ?? 1;
      let at = nearest(nearest(was / grid) * grid);
      if (e.type === 'note_on' || e.type === 'note_off') {
        const key = (track * 16 + (e.channel ?? 0)) * 128 + e.note;
        if (e.type === 'note_on' && (e.velocity ?? 1) > 0) {
          sounding.set(key, { was, at });
        } else {
          const on = sounding.get(key);
          if (on !== undefined && on.was < was && on.at === at) at = nearest(at + grid);
          sounding.delete(key);
        }
      } else if (e.meta_type === 'end_of_track') {
        at = Math.max(at, latest.get(track) ?? 0);
      }
      latest.set(track, Math.max(at, latest.get(track) ?? 0));
      e.time = at;
    }
  }

  const functions = {
    read: (path) => open(host.read(path)),
    decode: (bytes) => open(host.decode(bytes)),
    write: (path, file) => host.write(path, plain(file, 'write', 2)),
    encode: (file) => host.bytes(host.encode(plain(file, 'encode', 1))),
    info: (file) => host.info(typeof file === 'string' ? host.read(file) : plain(file, 'info', 1)),

    transpose(events, semitones) {
      const list = listOf(events, 'transpose');
      if (typeof semitones !== 'number') bad(2, 'transpose', 'number', semitones);
      for (const e of list) {
        if (pitched.has(e.type)) e.note = Math.min(Math.max(e.note + nearest(semitones), 0), 127);
      }
      return events;
    },

    quantize(events, grid) {
      const list = listOf(events, 'quantize');
      if (typeof grid !== 'number') bad(2, 'quantize', 'number', grid);
      if (grid <= 0) return events;
      timed(list);
      snap(inOrder(list), grid);
      setDeltas(inOrder(list));
      return events;
    },

    filter(events, keep) {
      if (typeof keep !== 'function') bad(2, 'filter', 'function', keep);
      return listOf(events, 'filter').filter((e, i) => keep(e, i));
    },

    merge(tracks) {
      if (!Array.isArray(tracks)) bad(1, 'merge', 'list of tracks', tracks);
      const resolution = tracks.find((track) => track?.ticks_per_beat)?.ticks_per_beat;
      const events = [];
      let last = 0;
      tracks.forEach((track, i) => {
        if (!isObject(track)) throw new TypeError("bad argument #1 to 'merge' (item " + (i + 1) + ' is not a track)');
        const list = listOf(track, 'merge'), from = track.ticks_per_beat ?? resolution;
        timed(list);
        for (const { track: _, ...e } of list) {
          if (from !== resolution) e.time = nearest(e.time * resolution / from);
          last = Math.max(last, e.time);
          if (e.meta_type !== 'end_of_track') events.push(e);
        }
      });
      inOrder(events).push({ type: 'meta', time: last, delta: 0, meta_type: 'end_of_track' });
      setDeltas(events);
      return { format: 0, ticks_per_beat: resolution, events };
    },
  };
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(midi, name, { value, writable: true, configurable: true });
  }
})
