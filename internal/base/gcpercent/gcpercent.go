// Package gcpercent sets how often garbage is collected, before other packages are
// initialised: they allocate just enough for a collection, which would take a seventh of the
// processor time of a short command. Go initialises packages in the order of their import
// paths, each as soon as its imports are; so this one imports little.
package gcpercent

import (
	"os"
	"runtime/debug"
)

// Default is the GOGC value until a command reads the configuration, and the default in
// there. A server has a small heap and many short-lived allocations. Under load, 100 saves
// 6 MB and costs 4 % more CPU time; 400 takes 15 MB more and saves 1 %.
const Default = 200

func init() { //nolint:gochecknoinits // it must be first
	if os.Getenv("GOGC") == "" { //nolint:forbidigo // nobody could pass the environment this early
		debug.SetGCPercent(Default)
	}
}
