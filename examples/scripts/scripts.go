// Package scripts holds the example scripts, so that the program can show them.
package scripts

import "embed"

// Files are the examples, NAME.lua each. The first line of each says what it shows.
//
//go:embed *.lua
var Files embed.FS
