package builtin

import _ "embed"

//go:embed instructions.md
var instructions string

// Instructions teach a model how to use the hub. They are sent when a client initializes.
func Instructions() string { return instructions }
