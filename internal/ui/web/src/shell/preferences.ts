// What a person chose for this browser: colours and density.
import { effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
export const densities = ['comfortable', 'compact'] as const

export const theme = stored('luanette.theme', themes)
export const density = stored('luanette.density', densities)

/** A choice that is kept in this browser. */
function stored<T extends string>(key: string, all: readonly T[]) {
  const known = localStorage.getItem(key) as T | null
  const value = signal<T>(known && all.includes(known) ? known : all[0])
  effect(() => localStorage.setItem(key, value.value))
  return value
}

effect(() => {
  document.documentElement.dataset.theme = theme.value
  document.documentElement.dataset.density = density.value
})
