// Text is a string. Other content, and text requested as bytes, is a Uint8Array.
(function (fs, host) {
  Object.defineProperty(fs, 'read_bytes', { value: function read_bytes(path) { return host.bytes(host.read(path)); } });
})
