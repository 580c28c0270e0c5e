package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
)

// snapshot is a file as it is on disk.
type snapshot struct {
	text    []byte // nil if there is none
	mode    fs.FileMode
	target  string   // the file that a symbolic link points to
	missing []string // folders that do not exist, the innermost first
}

func readFile(path string) (snapshot, error) {
	s := snapshot{mode: 0o600}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
			if _, err := os.Stat(folder); err == nil || folder == filepath.Dir(folder) {
				return s, nil
			}
			s.missing = append(s.missing, folder)
		}
	}
	if err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	info, err := os.Stat(path)
	if err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	if s.text, s.mode = text, info.Mode().Perm(); text == nil {
		s.text = []byte{}
	}
	if s.target, err = filepath.EvalSymlinks(path); err != nil {
		return s, fault.Wrap(fault.Config, err, "read the client's configuration")
	}
	return s, nil
}

// write replaces the file in one step. It keeps the mode, and a symbolic link.
func (s snapshot) write(path string, text []byte) error {
	if s.target != "" {
		path = s.target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Config, err, "write %s", path)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".luanette-*")
	if err != nil {
		return fault.Wrap(fault.Config, err, "write %s", path)
	}
	_, err = fresh.Write(text)
	err = errors.Join(err, fresh.Chmod(s.mode), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return fault.Wrap(fault.Config, errors.Join(err, os.Remove(fresh.Name())), "write %s", path)
	}
	return nil
}
