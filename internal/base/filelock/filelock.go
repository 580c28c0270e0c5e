// Package filelock lets one process at a time do something, by a lock on a file. The
// operating system releases the lock when the process ends, however it ends.
package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Lock is a lock that this process holds.
type Lock struct{ file *os.File }

var errTaken = errors.New("another process holds the lock")

// Try takes the lock on the file at path, which it creates if needed. It returns nil if
// another process, or another Lock of this one, holds it.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, errTaken) {
			return nil, nil
		}
		return nil, err
	}
	return &Lock{file}, nil
}

// pollInterval is the time between attempts of Wait. Blocking in the operating system
// could not be ended by a context.
const pollInterval = 20 * time.Millisecond

// Wait takes the lock on one of the files as soon as nobody else holds it.
func Wait(ctx context.Context, paths ...string) (*Lock, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		for _, path := range paths {
			if held, err := Try(path); held != nil || err != nil {
				return held, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Unlock releases the lock. The file stays: removing it would let two processes lock two
// files of the same name.
func (l *Lock) Unlock() error { return errors.Join(unlock(l.file), l.file.Close()) }
