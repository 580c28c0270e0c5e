// Text is a string; what is no text, and what shall not be, is a Uint8Array.
(function (fs, host) {
  Object.defineProperty(fs, 'read_bytes', { value: function read_bytes(path) { return host.bytes(host.read(path)); } });
})
