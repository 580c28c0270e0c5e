(function (workflow, { placed }) {
  const { mcp } = globalThis;
  const defaultTimeout = 120000;

  const check = (value, kind, position, name) => {
    const got = value === null ? 'null' : typeof value;
    if (got !== kind) throw new TypeError('bad argument #' + position + " to '" + name + "' (" + kind + ' expected, got ' + got + ')');
  };

  function backend() {
    if (!mcp.has('hootenanny')) throw new Error('the music backend is not connected: there is no namespace hootenanny');
    return mcp.hootenanny;
  }

  // Returns the result of a job that has ended.
  function outcome(job) {
    if (job.status === 'failed' || job.status === 'cancelled') {
      const reason = job.error?.message ?? job.error;
      throw new Error('job ' + job.job_id + ' ' + job.status + (reason ? ': ' + reason : ''));
    }
    return job.result;
  }

  // The backend waits at most 30 seconds per call, so this polls repeatedly.
  async function wait(id, timeout) {
    const step = 30000;
    for (let left = timeout; left > 0; left -= step) {
      const polled = await backend().job_poll({ job_ids: [id], timeout_ms: Math.min(left, step), mode: 'all' });
      if (polled.pending.length === 0) return outcome(await backend().job_status({ job_id: id }));
    }
    throw new Error('job ' + id + ' has not ended after ' + timeout + ' ms');
  }

  // Runs a tool that starts a job, and waits for the job.
  async function finish(tool, params, timeout = defaultTimeout) {
    const started = await backend()[tool](params);
    return wait(started.job_id, timeout);
  }

  const generate = ({ soundfont_hash, sample_rate, gain, normalize, timeout_ms, ...params }) => finish('orpheus_generate', params, timeout_ms);

  const toWav = (midi, font, { sample_rate, gain, normalize, tags, creator, timeout_ms }) =>
    finish('convert_midi_to_wav', { input_hash: midi.content_hash, soundfont_hash: font, sample_rate, gain, normalize, tags, creator }, timeout_ms);

  const functions = {
    async wait_job(id, timeout = 60000) {
      check(id, 'string', 1, 'wait_job');
      check(timeout, 'number', 2, 'wait_job');
      return wait(id, timeout);
    },
    async orpheus_generate(params = {}) {
      check(params, 'object', 1, 'orpheus_generate');
      return generate(params);
    },
    async orpheus_to_wav(params) {
      check(params, 'object', 1, 'orpheus_to_wav');
      if (typeof params.soundfont_hash !== 'string') throw new TypeError('orpheus_to_wav needs soundfont_hash');
      const midi = await generate(params);
      return { midi, wav: await toWav(midi, params.soundfont_hash, params) };
    },
    async abc_to_wav(text, font, options = {}) {
      check(text, 'string', 1, 'abc_to_wav');
      check(font, 'string', 2, 'abc_to_wav');
      check(options, 'object', 3, 'abc_to_wav');
      const { sample_rate, gain, normalize, timeout_ms, ...how } = options;
      const midi = await backend().abc_to_midi({ ...how, abc: text });
      return { ...await toWav(midi, font, options), midi };
    },
  };
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(workflow, name, { value: placed(value), writable: true, configurable: true });
  }
})
