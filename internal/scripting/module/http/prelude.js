// Bodies are arbitrary bytes, which objects passed to the host cannot contain: so they are
// passed separately.
(function (http, { request: send }) {
  const bad = (name, wanted, value) => {
    throw new TypeError("bad argument #1 to '" + name + "' (" + wanted + ' expected, got ' + typeof value + ')');
  };

  async function ask({ url, method, headers, body, timeout_ms }) {
    const sent = {};
    for (const [name, value] of Object.entries(headers ?? {})) sent[name] = String(value);
    if (typeof body === 'object' && body !== null && !(body instanceof Uint8Array)) {
      body = JSON.stringify(body);
      if (!Object.keys(sent).some((name) => name.toLowerCase() === 'content-type')) sent['content-type'] = 'application/json';
    }
    method ??= body === undefined || body === null ? 'GET' : 'POST';
    const answer = await send(method, url, sent, body, timeout_ms);
    if (!Array.isArray(answer)) return answer; // made up in a preview
    const [status, answered, text, from] = answer;
    return { status, headers: answered, body: text, url: from };
  }

  const request = async (what) => {
    if (typeof what === 'string') what = { url: what };
    if (typeof what !== 'object' || what === null) bad('request', 'object', what);
    if (typeof what.url !== 'string') throw new TypeError("bad argument #1 to 'request' (its url is missing)");
    return ask(what);
  };

  const define = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true });
  define(http, 'request', request);
  define(http, 'get', async (url, headers) => {
    if (typeof url !== 'string') bad('get', 'string', url);
    return ask({ url, headers, method: 'GET' });
  });
  define(http, 'post', async (url, body, headers) => {
    if (typeof url !== 'string') bad('post', 'string', url);
    return ask({ url, body: body ?? '', headers, method: 'POST' });
  });
  define(globalThis, 'http_request', request);
})
