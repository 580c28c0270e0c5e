// A shop, served by grpc-js with reflection at a free port of this machine.
import grpc from '@grpc/grpc-js'
import loader from '@grpc/proto-loader'
import { ReflectionService } from '@grpc/reflection'

const definition = loader.loadSync('shop.proto', { longs: String, enums: String, oneofs: true, defaults: true })
const { shop } = grpc.loadPackageDefinition(definition)
const server = new grpc.Server()
const product = (id) => ({
  id, stock: '9007199254740993', price: 1.5, state: 'SOLD_OUT', tags: ['a'], sizes: { m: { width: 2, unit: 'INCH' } },
  added: { seconds: 1700000000, nanos: 0 }, delivery: { seconds: 3, nanos: 500000000 },
  extra: { fields: { color: { stringValue: 'red', kind: 'stringValue' } } }, note: { value: 'new' }, picture: Buffer.from('png'),
  parts: [{ id: 'part' }], makerName: 'Ann', maker: 'makerName',
})

server.addService(shop.v1.Products.service, {
  find: (call, done) => {
    if (call.request.id === 'none') return done({ code: grpc.status.NOT_FOUND, details: 'no product none' })
    if (call.request.id === 'me') return done(null, { id: call.metadata.get('authorization').join() })
    done(null, product(call.request.id))
  },
  save: (call, done) => done(null, call.request),
  delete: (_, done) => done(null, {}),
  watch: (call) => {
    for (let i = 1; i <= call.request.count; i++) call.write({ id: `p${i}` })
    if (call.request.fail) call.emit('error', { code: grpc.status.DATA_LOSS, details: 'the rest is lost' })
    else if (!call.request.forever) call.end()
  },
  upload: (_, done) => done(null, {}),
  talk: (call) => call.end(),
  echo: (call, done) => done(null, call.request),
})
new ReflectionService(definition).addToServer(server)
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (err, port) => {
  if (err) throw err
  console.log(`127.0.0.1:${port}`)
})
