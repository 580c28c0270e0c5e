// Package lazyregexp compiles regular expressions when they are first used. Together, those
// of all packages take longer to compile than many commands take to run.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that returns the compiled expression. The function panics if the
// expression is invalid; in tests, New does so.
//
//go:noinline // Its closures are compiled once, not for each expression.
func New(expression string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	if strings.HasSuffix(os.Args[0], ".test") {
		compiled()
	}
	return compiled
}
