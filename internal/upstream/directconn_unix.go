//go:build unix

package upstream

import "syscall"

// silent tells that the connection is open and nothing came over it: what comes
// between two requests is its end, or nothing one would want to read.
func (c *directConn) silent() bool {
	if c.raw == nil {
		return false
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && quiet
}
