// Package jstest caches the compiled JavaScript engine for tests.
package jstest

import (
	"os"
	"path/filepath"
	"sync"
)

// Cache returns a folder with compiled code for all tests of this user, in all packages
// and later runs, because compiling takes a second. The code there was compiled from the
// same engine by the same compiler. Without a usable folder it returns "", and every
// test compiles.
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
