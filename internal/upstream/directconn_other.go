//go:build !unix

package upstream

// silent does not know, so that every request has a connection of its own.
func (c *directConn) silent() bool { return false }
