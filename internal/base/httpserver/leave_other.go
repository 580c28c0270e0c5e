//go:build !linux

package httpserver

import (
	"errors"
	"syscall"
)

func dropNew(syscall.Conn) error { return errors.ErrUnsupported }
