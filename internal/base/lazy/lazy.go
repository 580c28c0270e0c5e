// Package lazy puts off what takes long until somebody needs it. The program starts
// often, and most starts need little of what it knows.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles an expression when it is first asked for. One that is wrong panics
// then; a test of this package looks at all of them.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
