// Package jstest keeps the compiled JavaScript engine for tests.
package jstest

import (
	"os"
	"path/filepath"
	"sync"
)

// Cache is a folder of compiled code for all tests of this user, those of other
// packages and of later runs too: compiling takes a second of work. What is found there
// was compiled from the very same engine by the very same compiler. Where there is no
// place for it, it is "": everybody compiles.
var Cache = sync.OnceValue(func() string {
	caches, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	folder := filepath.Join(caches, "luanette-tests", "javascript")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return ""
	}
	return folder
})
