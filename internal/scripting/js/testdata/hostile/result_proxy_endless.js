// ends: timeout,limit_exceeded,script_error
const h = {get: () => new Proxy({}, h), ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({value: 1, enumerable: true, configurable: true})}; new Proxy({}, h)
