package httpserver

import (
	"crypto/tls"
	"os"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// certificate is a TLS certificate that is read again when its file changes.
type certificate struct {
	certFile, keyFile string
	warn              func(error)

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // modification time of the file that was read
	checked time.Time // when the file was last checked
}

// current returns the certificate. A new one that cannot be read leaves the old one
// in place, since it may be half written.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && time.Since(c.checked) < time.Second {
		return c.pair, nil
	}
	c.checked = time.Now()
	info, err := os.Stat(c.certFile)
	if err == nil && c.pair != nil && info.ModTime().Equal(c.changed) {
		return c.pair, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	switch {
	case err == nil:
		c.pair, c.changed = &pair, info.ModTime()
	case c.pair == nil:
		return nil, fault.Wrap(fault.Config, err, "read certificate").WithHint("`luanette cert` makes one for this machine")
	default:
		c.warn(err)
	}
	return c.pair, nil
}
