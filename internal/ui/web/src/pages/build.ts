// The pages on which people write scripts, run them and keep what comes of it. They share
// so much that they are loaded together.
export { Artifacts } from './artifacts'
export { Jobs } from './jobs'
export { Playground } from './playground'
export { Scripts } from './scripts'
export { Timeline } from './timeline'
