//go:build linux

package launch

import (
	"os"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// BenchmarkStart runs a program that ends at once, without a sandbox and at each level.
// LUANETTE is the program that starts sandboxes, if it is not that of the test.
func BenchmarkStart(b *testing.B) {
	for _, level := range []profile.Level{profile.Off, profile.Open, profile.Strict} {
		b.Run(string(level), func(b *testing.B) {
			l := &Launcher{Folder: b.TempDir(), Home: os.Getenv("HOME"), Executable: os.Getenv("LUANETTE")}
			l.Support() // found out once in a process
			for b.Loop() {
				c, err := l.Command(profile.Profile{Name: "true", Level: level}, Program{Path: "/bin/true", Args: []string{"true"}})
				if err == nil {
					err = c.Run()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
