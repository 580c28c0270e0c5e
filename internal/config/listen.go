package config

import (
	"context"
	"os"

	"net"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpserver"
	"github.com/luanette/luanette/internal/base/netguard"
)

// NodeName returns the name of this node.
func (c *Config) NodeName() string {
	if c.Node != "" {
		return c.Node
	}
	name, _ := os.Hostname() // an empty name has a default
	return name
}

// Address returns the URL at which this machine reaches a server of this configuration.
func (c *Config) Address() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return c.Scheme() + "://" + net.JoinHostPort("localhost", port)
	}
	return c.Scheme() + "://" + c.Listen
}

// Scheme returns the scheme of the server's URLs: http or https.
func (c *Config) Scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

// CheckListen returns an error if the server cannot listen on its address. It runs before
// the server is built and registered with other nodes. It closes the listener again, so
// connections are refused until the server serves.
func (c *Config) CheckListen(ctx context.Context) error {
	listener, err := httpserver.Listen(ctx, httpserver.Options{Address: c.Listen})
	if err != nil {
		return err
	}
	return listener.Close()
}

func (c *Config) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return fault.New(fault.Config, "tls_cert and tls_key must be given together").WithHint("`luanette cert` creates both")
	case c.MaxConnections < 1:
		return fault.New(fault.Config, "max_connections: %d is too small", c.MaxConnections).WithHint("10000 is usual")
	}
	_, err := netguard.ParseProxies(c.TrustedProxies)
	return err
}

// Browsers returns which requests of browsers are served, and which proxies are trusted.
func (c *Config) Browsers() netguard.Browsers {
	proxies, _ := netguard.ParseProxies(c.TrustedProxies) // check has refused invalid ones
	return netguard.Browsers{Origins: c.MCP.AllowedOrigins, Proxies: proxies, PublicURL: c.PublicURL}
}

// Which users of the machine are served as guests.
const (
	LocalOwn = "own"
	LocalAll = "all"
)

// ListensLocally reports whether only this machine can reach an address.
func ListensLocally(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err != nil || host != "" && netguard.IsLoopback(host) // the listener reports an invalid address
}
