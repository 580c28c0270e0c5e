// Tools are described in the language of the calling script.
(function (tools, host) {
  Object.defineProperty(tools, 'describe', {
    value: function describe(names, format = 'typescript') { return host.describe(names, format); }, writable: true, configurable: true,
  });
})
