// Package egress is the proxy through which a sandboxed program reaches the network. It
// takes HTTP CONNECT and plain HTTP on one listener, connects to allowed
// destinations only, and records every connection. A program whose environment refers to
// secrets gets placeholders; the proxy replaces them in requests to the secret's hosts.
package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Options are a service's choices. The zero value works, without events and records.
type Options struct {
	Events *event.Bus       // nil: no events
	Record func(Connection) // takes every connection that has ended, refused ones too; nil: none
	// Refused takes the first refusal of each destination in a program's run; nil: none.
	Refused func(profile.Refusal)
	Log     *slog.Logger // nil: no log

	// Folder is where the certificates for programs are written; they are removed when
	// the program ends. Empty: the system's folder for temporary files.
	Folder string
	// Roots are the authorities of remote servers; nil means the system's.
	Roots *x509.CertPool
	// RootFiles are PEM files with more authorities that programs are to trust.
	RootFiles []string

	// Secret resolves the references of credentials; nil: they are the secrets themselves.
	Secret func(text string) (secret.Text, error)

	MaxConnections   int           // how many a program may have open, further ones wait; zero: 256
	HandshakeTimeout time.Duration // until a program has said where it wants to connect to; zero: 20 s

	Clock clock.Clock // nil means the machine's
	// Resolve returns the addresses of a name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was checked; nil dials it.
	Dial func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// Service makes the gateways of programs and knows their connections. It is safe for
// concurrent use.
type Service struct {
	options Options
	history history
}

// New returns a service.
func New(o Options) *Service {
	o.MaxConnections = cmp.Or(o.MaxConnections, 256)
	o.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, 20*time.Second)
	if o.Record == nil {
		o.Record = func(Connection) {}
	}
	if o.Refused == nil {
		o.Refused = func(profile.Refusal) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Secret == nil {
		o.Secret = func(text string) (secret.Text, error) { return secret.New(text), nil }
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Resolve == nil {
		o.Resolve = resolveName
	}
	if o.Dial == nil {
		o.Dial = dialAddress
	}
	return &Service{options: o}
}

// Connections are the open and the most recent ended connections of a program, the
// newest first.
func (s *Service) Connections(name string) []Connection { return s.history.connections(name) }

// Hosts are all destinations of a program, in order.
func (s *Service) Hosts(name string) []Host { return s.history.hosts(name) }

// Forget removes what is known of the ended connections of a program.
func (s *Service) Forget(name string) { s.history.forget(name) }

// begin starts the record of a connection.
func (g *Gateway) begin(to destination, protocol string) *track {
	t := &track{gateway: g, about: Connection{Server: g.name, Host: to.host, Port: to.port, Protocol: protocol, Outcome: Open, Started: g.service.options.Clock.Now()}}
	g.service.history.begin(t)
	return t
}

// end ends the record of a connection and reports it.
func (s *Service) end(t *track) {
	c := s.history.end(t, s.options.Clock.Now())
	s.options.Record(c)
	if c.Outcome != Refused {
		s.options.Events.Publish(Ended{c})
		return
	}
	s.options.Events.Publish(RefusedConnection{c, c.Line()})
	if t.gateway.isFirst(c.Destination()) {
		s.options.Refused(profile.Refusal{Time: c.Started, Name: c.Server, Action: profile.Connecting, Object: c.Destination(), Allow: c.Line()})
	}
}

// fail sets why a connection was refused or failed.
func (s *Service) fail(t *track, err error) {
	outcome, allow := Failed, ""
	if refused := asRefused(err); refused != nil {
		outcome, allow = Refused, refused.allow
	}
	s.history.change(t, func(c *Connection) { c.Outcome, c.Reason, c.Allow = outcome, err.Error(), allow })
}

// Within makes the gateway of a program with a profile. What is not Strict has the
// network of the machine: the gateway allows everything then.
func (s *Service) Within(p profile.Profile) (*Gateway, error) {
	rules, err := ParseRules(p.Network)
	if err != nil {
		return nil, err
	}
	rules.all = p.Level != profile.Strict // the list still says which ports are used
	program := Program{Name: p.Name, Rules: rules}
	for _, c := range p.Credentials {
		value, err := s.options.Secret(c.Value.Reveal())
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "secret %s of %s", c.Name, p.Name).WithHint("%s", fault.HintOf(err))
		}
		program.Secrets = append(program.Secrets, Secret{Name: c.Name, Variable: c.Variable, Value: value, Hosts: c.Hosts})
	}
	return s.Gateway(program)
}
