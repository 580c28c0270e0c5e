// Package textdiff shows what differs between two texts.
package textdiff

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Unified returns what differs between two texts, as a unified diff; "" if nothing does. A
// file that does not exist is nil.
func Unified(path string, before, after []byte) string {
	from, to := path, path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(from, before, to, after), []byte("\n")) // without the line that names the command
	return string(text)
}
