// The address of the page: #/page/rest?filter=value. Everything that can be linked is
// in it.
import { computed, signal } from '@preact/signals'

export interface Route {
  page: string
  rest: string
  query: URLSearchParams
}

const hash = signal(location.hash)
addEventListener('hashchange', () => (hash.value = location.hash))

export const route = computed<Route>(() => {
  const [path, query] = hash.value.replace(/^#?\/?/, '').split(/\?(.*)/s)
  const [page, ...rest] = path.split('/')
  return { page, rest: rest.map(decode).join('/'), query: new URLSearchParams(query) }
})

/** An address that somebody typed may have a lone %. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Opens another address. */
export function go(path: string): void {
  location.hash = `#/${path}`
}

/** Changes the address without a step of the history: what was there does not matter any more. */
export function replace(path: string): void {
  history.replaceState(null, '', `#/${path}`)
  hash.value = location.hash
}

/** The value of a filter in the address, and a function that changes it. Filters are not steps of the history. */
export function useFilter(name: string, missing = ''): [string, (value: string) => void] {
  return [route.value.query.get(name) ?? missing, (value) => {
    const query = new URLSearchParams(route.value.query)
    if (value === missing) query.delete(name)
    else query.set(name, value)
    const [path] = location.hash.split('?')
    history.replaceState(null, '', query.size > 0 ? `${path}?${query.toString()}` : path || '#/')
    hash.value = location.hash
  }]
}
