// Package scripts holds the example scripts, so that the program can show them.
package scripts

import "embed"

// Files are the examples, NAME.lua, NAME.js or NAME.ts each. The first line of each
// describes it.
//
//go:embed *.lua *.js *.ts
var Files embed.FS
