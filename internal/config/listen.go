package config

import (
	"context"
	"os"

	"net"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpserver"
	"github.com/luanette/luanette/internal/base/netguard"
)

// NodeName is what this machine is called among others.
func (c *Config) NodeName() string {
	if c.Node != "" {
		return c.Node
	}
	name, _ := os.Hostname() // an empty one is called something
	return name
}

// Address is where somebody on this machine reaches a server of this configuration.
func (c *Config) Address() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return c.Scheme() + "://" + net.JoinHostPort("localhost", port)
	}
	return c.Scheme() + "://" + c.Listen
}

// Scheme is how addresses of ours begin.
func (c *Config) Scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

// CheckListen refuses an address that cannot be listened on, before anything is built
// and other nodes are told of this one. Nobody is let in: until there is somebody to
// answer, connections are refused.
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
		return fault.New(fault.Config, "tls_cert and tls_key go together").WithHint("`luanette cert` makes both")
	case c.MaxConnections < 1:
		return fault.New(fault.Config, "max_connections: %d is too few", c.MaxConnections).WithHint("10000 is usual")
	}
	return nil
}

// ListensLocally tells whether only this machine can reach an address.
func ListensLocally(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err != nil || host != "" && netguard.IsLoopback(host) // what is no address the listener says better
}
