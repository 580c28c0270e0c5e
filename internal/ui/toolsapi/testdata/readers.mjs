// Validates the document of a server, and calls its tools with a client made from it.
import SwaggerParser from '@apidevtools/swagger-parser'
import axiosClient from 'openapi-client-axios'

const url = process.argv[2]
const document = await (await fetch(`${url}/openapi.json`)).json()
document.servers = [{ url }]
const valid = await SwaggerParser.validate(structuredClone(document))
console.log('valid', valid.openapi)

const OpenAPIClientAxios = axiosClient.default ?? axiosClient
const client = await new OpenAPIClientAxios({ definition: document }).init()
console.log(JSON.stringify((await client.echo(null, { text: 'hello' })).data.args))
console.log(JSON.stringify((await client.tree__grow__it_(null, {})).data))
try {
  await client.echo(null, [1])
} catch ({ response }) {
  console.log(response.status, response.headers['content-type'], response.data.code)
}
