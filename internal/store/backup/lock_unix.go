//go:build unix

package backup

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder locks a folder until unlock is called or the process ends.
func lockFolder(path string) (unlock func() error, err error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { // a descriptor is an int
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, folder.Close())
	}
	return func() error { // not by closing alone: a program that is just being started has the folder, too
		return errors.Join(syscall.Flock(int(folder.Fd()), syscall.LOCK_UN), folder.Close())
	}, nil
}
