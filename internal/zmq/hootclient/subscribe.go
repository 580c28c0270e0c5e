package hootclient

import (
	"context"
	"net"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// Subscribe hears the backend's broadcasts from now on, at the endpoint its catalog
// names. It returns once connected, or when ctx ends, connecting on. heard must
// not block.
func (c *Client) Subscribe(ctx context.Context, endpoint string, heard func(hootproto.RawBroadcast)) error {
	where, err := beside(c.socket.Addr(), endpoint)
	if err != nil {
		return err
	}
	sub, err := zmtp.Dial(context.WithoutCancel(ctx), zmtp.Sub, where, zmtp.Options{
		MaxMessage: c.opts.MaxBody, MaxFrames: 8, Control: c.opts.Control,
	})
	if err != nil {
		return err
	}
	sub.Subscribe("")
	c.mu.Lock()
	old, ended := c.sub, c.err
	if ended == nil {
		c.sub = sub
		c.work.Go(func() { c.overhear(sub, heard) }) //nolint:contextcheck // it listens as long as the client lives
	}
	c.mu.Unlock()
	if ended != nil {
		sub.Close()
		return ended
	}
	if old != nil {
		old.Close()
	}
	_ = sub.Ready(ctx) // it goes on connecting by itself
	return nil
}

// overhear hands on broadcasts until the socket closes.
func (c *Client) overhear(sub *zmtp.Socket, heard func(hootproto.RawBroadcast)) {
	for {
		m, err := sub.Recv(context.Background())
		if err != nil {
			return
		}
		news, err := hootproto.ParseBroadcast(m[0])
		if err != nil {
			c.opts.OnInvalid(err)
			continue
		}
		heard(news)
	}
}

// beside is where to hear the broadcasts of the backend at addr. A backend is one
// program on one machine: of a TCP endpoint only the port counts, so that nobody
// is sent elsewhere, and one who listens on every address need not know its own.
func beside(addr, announced string) (string, error) {
	scheme, host, _ := strings.Cut(addr, "://")
	theirs, rest, _ := strings.Cut(announced, "://")
	if scheme != theirs {
		return "", fault.New(fault.Upstream, "broadcasts at %.80q of a backend at %s", announced, addr).
			WithHint("both must be tcp or both ipc")
	}
	if scheme != "tcp" {
		return announced, nil
	}
	host, _, err := net.SplitHostPort(host)
	if err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read %s", addr)
	}
	_, port, err := net.SplitHostPort(rest)
	if err != nil {
		return "", fault.Wrap(fault.Upstream, err, "broadcasts at %.80q", announced)
	}
	return "tcp://" + net.JoinHostPort(host, port), nil
}
