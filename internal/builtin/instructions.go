package builtin

import _ "embed"

//go:embed instructions.md
var instructions string

// Instructions teach a model to find and call the tools that are not listed, which is the
// same with every menu. They are sent when a client initializes.
func Instructions() string { return instructions }
