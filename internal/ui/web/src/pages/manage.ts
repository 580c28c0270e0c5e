// The pages about who may use the server, and what it did. They are loaded together.
export { Audit } from './audit'
export { Organisation } from './organisation'
export { People } from './people'
export { Settings } from './settings'
export { Usage } from './usage'
export { You } from './you'
