#!/usr/bin/env node
// Runs the luanette binary of this platform, which npm installed as an optional
// dependency. There is no install script: this works with --ignore-scripts too.
'use strict'
const { spawn } = require('node:child_process')
const os = require('node:os')

const name = `@luanette/${process.platform}-${process.arch}`
let binary
try {
  binary = require.resolve(`${name}/bin/luanette${process.platform === 'win32' ? '.exe' : ''}`)
} catch {
  console.error(`luanette: the package ${name} is not installed.
There are packages for linux, darwin and win32 on x64 and arm64. If yours is among them,
install again without --omit=optional; else build it: go install github.com/luanette/luanette/cmd/luanette@latest`)
  process.exit(1)
}

const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  try {
    process.on(signal, () => child.kill(signal))
  } catch {} // not on this platform
}
child.on('error', (err) => {
  console.error(`luanette: start ${binary}: ${err.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code))
