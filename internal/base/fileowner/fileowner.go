// Package fileowner tells whose a file is: root must leave nothing in the folder of a service
// that the service cannot read, and whoever may not use a file is told who may.
package fileowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// unknown is no user's id.
const unknown = -1

// Foreign reports whether this process is root's, and a path another user's.
func Foreign(path string) bool {
	uid := Of(path)
	return os.Geteuid() == 0 && uid != 0 && uid != unknown
}

// Name is how the owner of a path is called in messages.
func Name(path string) string {
	id := strconv.Itoa(Of(path))
	if found, err := user.LookupId(id); err == nil { // systemd's dynamic users have no name for us
		return "the user " + found.Username
	}
	return "the user " + id
}

// Denied says whose the file is that an error says we may not use, or "".
func Denied(err error) string {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &at) {
		return ""
	}
	path, failed := filepath.Abs(at.Path)
	if failed != nil {
		return ""
	}
	for Of(path) == unknown && path != filepath.Dir(path) { // in a folder that we may not enter
		path = filepath.Dir(path)
	}
	if Of(path) == unknown {
		return ""
	}
	return fmt.Sprintf("%s belongs to %s", path, Name(path))
}
