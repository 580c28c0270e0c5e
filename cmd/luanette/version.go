package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "0.1.0-dev"

// versionCommand is `luanette version`.
type versionCommand struct{}

// Run prints the version, the commit it was built from and the Go that built it.
func (versionCommand) Run(proc *process) error {
	_, err := fmt.Fprintf(proc.Stdout, "luanette %s%s %s %s/%s\n", version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit returns the commit of the build, such as " (abcdef123456)", or "".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	return ""
}
