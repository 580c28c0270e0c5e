package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// link makes what a profile gives of the user's home visible at the same place of the
// private one: a program that may read ~/.kube looks for it below its own HOME. What the
// program has made there itself stays.
func (l *Launcher) link(private folders, p profile.Profile) {
	if l.Home == "" || l.Home == "/" {
		return
	}
	root, err := os.OpenRoot(private.home) // the program may have put links there that lead out
	if err != nil {
		return
	}
	defer root.Close()
	for _, path := range slices.Concat(p.Read, p.Write) {
		rest, below := strings.CutPrefix(path, l.Home+"/")
		if !below || strings.HasPrefix(private.home+"/", path+"/") {
			continue
		}
		if root.MkdirAll(filepath.Dir(rest), 0o700) == nil {
			_ = root.Symlink(path, rest) // it exists already, or the program does without
		}
	}
}
