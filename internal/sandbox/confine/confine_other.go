//go:build !linux

package confine

import (
	"errors"
	"net"
	"os"
	"syscall"
)

var errSystem = errors.New("there is no sandbox on this system")

func computerMemory() int64 { return 2 * mostMemory }

// Attributes are those of any process.
func (p *Policy) Attributes() *syscall.SysProcAttr { return nil }

// NewControl returns an error on this system.
func NewControl() (ours *net.UnixConn, theirs *os.File, err error) { return nil, nil, errSystem }

// Pass returns an error on this system.
func (p *Policy) Pass(*net.UnixConn) error { return errSystem }

// Next returns an error on this system.
func Next(*net.UnixConn) (m Message, attached int, err error) { return m, -1, errSystem }
