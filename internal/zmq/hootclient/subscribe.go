package hootclient

import (
	"context"
	"net"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// Subscribe receives the backend's broadcasts from the endpoint in its catalog and
// calls handle for each; handle must not block. It returns when it is connected;
// when ctx ends before, it returns too and connects in the background.
func (c *Client) Subscribe(ctx context.Context, endpoint string, handle func(hootproto.RawBroadcast)) error {
	address, err := broadcastAddress(c.socket.Addr(), endpoint)
	if err != nil {
		return err
	}
	sub, err := zmtp.Dial(context.WithoutCancel(ctx), zmtp.Sub, address, zmtp.Options{
		MaxMessage: c.opts.MaxBody, MaxFrames: 8, Control: c.opts.Control, Curve: c.opts.Curve,
	})
	if err != nil {
		return err
	}
	sub.Subscribe("")
	c.mu.Lock()
	old, ended := c.sub, c.err
	if ended == nil {
		c.sub = sub
		c.work.Go(func() { c.receiveBroadcasts(sub, handle) }) //nolint:contextcheck // it receives until the client is closed
	}
	c.mu.Unlock()
	if ended != nil {
		sub.Close()
		return ended
	}
	if old != nil {
		old.Close()
	}
	_ = sub.Ready(ctx) // otherwise it goes on connecting in the background
	return nil
}

// receiveBroadcasts hands on broadcasts until the socket is closed.
func (c *Client) receiveBroadcasts(sub *zmtp.Socket, handle func(hootproto.RawBroadcast)) {
	for {
		m, err := sub.Recv(context.Background())
		if err != nil {
			return
		}
		broadcast, err := hootproto.ParseBroadcast(m[0])
		if err != nil {
			c.opts.OnInvalid(err)
			continue
		}
		handle(broadcast)
	}
}

// broadcastAddress is where to receive the broadcasts of the backend at addr. Of an
// announced TCP endpoint only the port is used: a backend cannot direct clients to
// another host, and one that listens on every address need not know its own.
func broadcastAddress(addr, announced string) (string, error) {
	scheme, host, _ := strings.Cut(addr, "://")
	theirs, rest, _ := strings.Cut(announced, "://")
	if scheme != theirs {
		return "", fault.New(fault.Upstream, "broadcast endpoint %.80q of a backend at %s", announced, addr).
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
		return "", fault.Wrap(fault.Upstream, err, "broadcast endpoint %.80q", announced)
	}
	return "tcp://" + net.JoinHostPort(host, port), nil
}
