// The pages about servers and their tools. They are loaded together.
export { Approvals } from './approvals'
export { Prompts } from './prompts'
export { Servers } from './servers'
export { Sets } from './sets'
export { Tools } from './tools'
