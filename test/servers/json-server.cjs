// Serves the data of a file as a REST API, and prints its address.
const jsonServer = require('json-server')

const server = jsonServer.create()
server.use(jsonServer.defaults({ logger: false, noGzip: true }))
server.use(jsonServer.router(process.argv[2]))
const listener = server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}`))
