// URI templates (RFC 6570), as servers list them for resources.

const parts = /\{([+#./;?&]?)([^{}]+)\}/g

const namesOf = (list: string) => list.split(',').map((name) => name.replace(/(\*|:\d+)$/, ''))

/** The names of a template's variables, in their order. */
export const variablesOf = (template: string) => [...new Set([...template.matchAll(parts)].flatMap(([, , list]) => namesOf(list)))]

/** The URI that a template stands for with these values. Variables without a value are left out. */
export function expand(template: string, values: Record<string, unknown>): string {
  return template.replace(parts, (_, operator: string, list: string) => {
    const given = namesOf(list).filter((name) => values[name] !== undefined && values[name] !== '')
    if (given.length === 0) return ''
    const text = (name: string) => (operator === '+' || operator === '#' ? encodeURI : encodeURIComponent)(String(values[name]))
    if (operator === '?' || operator === '&' || operator === ';') return operator + given.map((name) => `${name}=${text(name)}`).join(operator === ';' ? ';' : '&')
    return (operator === '+' ? '' : operator) + given.map(text).join(operator === '' || operator === '+' || operator === '#' ? ',' : operator)
  })
}
