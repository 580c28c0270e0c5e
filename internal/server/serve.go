package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// How long each step of leaving may take once what is under way has finished, or
// Config.Drain is over.
const (
	closeTime = 500 * time.Millisecond // connections may end
	graceTime = time.Second            // child processes may end by themselves
	flushTime = time.Second            // one part of the house may finish what it does
	storeTime = 10 * time.Second       // and store what nobody else knows
)

// Serve listens and answers until ctx ends, then lets requests under way finish
// and closes the house.
func (h *House) Serve(ctx context.Context) error {
	if err := h.checkDoors(ctx, h.config.Listen); err != nil {
		return errors.Join(err, h.Close(ctx))
	}
	h.hearBeforeOpening(ctx)
	listener, err := h.listen(ctx)
	if err != nil {
		return errors.Join(err, h.Close(ctx))
	}
	backend, stopBridge, err := h.startBridge(ctx)
	if err != nil {
		_ = listener.Close() // nobody was let in yet
		return errors.Join(err, h.Close(ctx))
	}
	h.listening.Store(h.config.scheme() + strings.TrimPrefix(baseOf(listener.Addr()), "http"))
	h.nodeListens(baseOf(listener.Addr()))
	h.greet(ctx, listener.Addr(), backend)

	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	door := usualPatience.door(requests, h.handler(), h.config.TLSCert != "")
	failed := make(chan error, 1)
	go func() { failed <- door.Serve(listener) }()

	select {
	case err = <-failed: // the listener died under us
		stopBridge()
	case <-ctx.Done():
		h.linger(ctx)
		var leaving sync.WaitGroup
		leaving.Go(stopBridge)
		h.drain(ctx)
		leaving.Wait()
		endRequests()
		err = shut(ctx, door)
		<-failed
	}
	return errors.Join(err, h.Close(ctx))
}

// ServeStdio answers one MCP client on in and out until it hangs up or ctx ends,
// then closes the house.
func (h *House) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := h.hub.ServeStdio(ctx, in, out)
	if ctx.Err() != nil {
		err = nil // told to stop
	}
	return errors.Join(err, h.Close(ctx))
}

// shut ends the connections.
func shut(ctx context.Context, d door) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := d.Shutdown(ctx); err != nil {
		return d.Close()
	}
	return nil
}

// greet tells people what is reachable where.
func (h *House) greet(ctx context.Context, addr net.Addr, backend string) {
	base := h.config.scheme() + "://" + addr.String()
	fmt.Fprintf(h.options.Stderr, "luanette %s is listening on %s\n", h.options.Version, base)
	for _, line := range [][2]string{
		{"page", base + "/"},
		{"MCP", base + "/mcp"},
		{"health", base + "/health"},
		{"ZeroMQ", backend},
		{"data", h.config.Data},
		{"config", orNone(h.config.File)},
		{"keys", h.keysNeeded(ctx)},
	} {
		if line[1] != "" {
			fmt.Fprintf(h.options.Stderr, "  %-8s %s\n", line[0], line[1])
		}
	}
}

// keysNeeded tells people whether the doors are shut.
func (h *House) keysNeeded(ctx context.Context) string {
	if shut, err := h.gate.KeyRequired(ctx); err == nil && !shut {
		return "none needed: everything is open to this machine; `luanette key create NAME` makes one"
	}
	return "needed; `luanette key list` shows them"
}

// Address is where somebody on this machine reaches a server of this configuration.
func (c *Config) Address() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return c.scheme() + "://" + net.JoinHostPort("localhost", port)
	}
	return c.scheme() + "://" + c.Listen
}

// scheme is how addresses of ours begin.
func (c *Config) scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

func orNone(text string) string {
	if text == "" {
		return "none; `luanette config show` prints the defaults"
	}
	return text
}

func listenFault(err error, address string) error {
	return fault.Wrap(fault.Config, err, "listen on %s", address).
		WithHint("choose another address with --listen, for example --listen 127.0.0.1:0 for any free port")
}
