// A shop, served by graphql-yoga at a free port of this machine.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createSchema, createYoga } from 'graphql-yoga'
import { GraphQLError } from 'graphql'

const makers = [{ id: 'm1', name: 'Anvil & Co' }]
const products = Array.from({ length: 45 }, (_, i) => ({
  id: `p${i + 1}`, name: `Thing ${i + 1}`, price: i + 0.5, state: i % 2 ? 'SOLD_OUT' : 'AVAILABLE',
  tags: ['a', 'b'], added: '2026-11-18T01:02:03Z', maker: makers[0], reviews: [{ stars: 4, text: 'good', author: { name: 'Ann' } }],
}))
let version = '1'

function fits(product, filter) {
  if (!filter) return true
  if (filter.state && product.state !== filter.state) return false
  if (filter.minPrice > product.price) return false
  if (filter.name?.equals && product.name !== filter.name.equals) return false
  if (filter.name?.contains && !product.name.includes(filter.name.contains)) return false
  if (filter.not && fits(product, filter.not)) return false
  return !filter.any || filter.any.some((one) => fits(product, one))
}

function page(list, { first, after }) {
  if (!first) throw new GraphQLError('give first', { extensions: { code: 'MISSING_PAGE' } })
  const start = after ? Number(atob(after)) : 0
  const nodes = list.slice(start, start + first)
  const end = start + nodes.length
  return {
    nodes, edges: nodes.map((node, i) => ({ node, cursor: btoa(String(start + i + 1)) })), totalCount: list.length,
    pageInfo: { hasNextPage: end < list.length, hasPreviousPage: start > 0, endCursor: nodes.length ? btoa(String(end)) : null },
  }
}

const resolvers = {
  Query: {
    product: (_, { id }) => products.find((p) => p.id === id),
    products: (_, args) => page(products.filter((p) => fits(p, args.filter)), args),
    search: (_, { text }) => [...makers, ...products].filter((one) => one.name.includes(text)),
    node: (_, { id }) => [...makers, ...products].find((one) => one.id === id),
    version: () => version,
    count: (_, { state }) => products.filter((p) => p.state === state).length,
    whoami: (_, __, { request }) => {
      const given = request.headers.get('authorization')
      if (!given) throw new GraphQLError('log in first', { extensions: { code: 'UNAUTHENTICATED' } })
      return given
    },
  },
  Mutation: {
    addProduct: (_, { input }) => {
      if (!input.name) return { product: null, problems: [{ field: 'name', message: 'is empty' }] }
      const product = { id: `p${products.length + 1}`, price: 1, state: 'AVAILABLE', reviews: [], ...input, maker: makers.find((m) => m.id === input.maker) }
      products.push(product)
      return { product, problems: [] }
    },
    setPrice: (_, { id, price }) => Object.assign(products.find((p) => p.id === id), { price }),
    version: (_, { next }) => (version = next),
  },
  Product: { similar: (p, { first }) => products.filter((other) => other !== p).slice(0, first) },
  Maker: {
    products: (_, args) => page(products, args),
    secret: () => { throw new GraphQLError('not for you', { extensions: { code: 'FORBIDDEN' } }) },
  },
  Node: { __resolveType: (one) => (one.id[0] === 'm' ? 'Maker' : 'Product') },
  Found: { __resolveType: (one) => (one.id[0] === 'm' ? 'Maker' : 'Product') },
}

const schema = createSchema({ typeDefs: readFileSync('shop.graphql', 'utf8'), resolvers })
const server = createServer(createYoga({ schema, logging: false, maskedErrors: false }))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/graphql`))
