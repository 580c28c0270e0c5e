// Package docs is the documentation, as the program shows it.
package docs

import "embed"

// Files are the pages, by their paths below docs.
//
//go:embed *.md errors/*.md decisions/*.md
var Files embed.FS
