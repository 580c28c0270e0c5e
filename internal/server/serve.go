package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/httpserver"
)

// How long each step of leaving may take once what is under way has finished, or
// Config.Drain is over.
const (
	closeTimeout = 500 * time.Millisecond // connections may end
	graceTimeout = time.Second            // child processes may end by themselves
	flushTimeout = time.Second            // one part of the server may finish what it does
	storeTimeout = 10 * time.Second       // and store what nobody else knows
)

// Serve listens and answers until ctx ends, then lets requests under way finish
// and closes the server.
func (srv *Server) Serve(ctx context.Context) error {
	if err := srv.checkKeyRequired(ctx, srv.config.Listen); err != nil {
		return errors.Join(err, srv.Close(ctx))
	}
	if srv.relay != nil {
		srv.relay.Ready(ctx) // clients that follow events from the start miss none
	}
	listener, err := httpserver.Listen(ctx, httpserver.Options{
		Address: srv.config.Listen, CertFile: srv.config.TLSCert, KeyFile: srv.config.TLSKey,
		MaxConnections: srv.config.MaxConnections, Log: srv.log,
	})
	if err != nil {
		return errors.Join(err, srv.Close(ctx))
	}
	backend, stopBridge, err := srv.startBridge(ctx)
	if err != nil {
		_ = listener.Close() // nobody was let in yet
		return errors.Join(err, srv.Close(ctx))
	}
	srv.listening.Store(srv.config.Scheme() + strings.TrimPrefix(httpserver.URL(listener.Addr()), "http"))
	srv.announceAddress(httpserver.URL(listener.Addr()))
	srv.printAddresses(ctx, listener.Addr(), backend)

	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	web := httpserver.New(requests, srv.handler())
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()

	select {
	case err = <-failed: // the listener died under us
		stopBridge()
	case <-ctx.Done():
		srv.linger(ctx)
		var leaving sync.WaitGroup
		leaving.Go(stopBridge)
		srv.drain(ctx)
		leaving.Wait()
		endRequests()
		err = shut(ctx, web)
		<-failed
	}
	return errors.Join(err, srv.Close(ctx))
}

// ServeStdio answers one MCP client on in and out until it hangs up or ctx ends,
// then closes the server.
func (srv *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := srv.hub.ServeStdio(ctx, in, out)
	if ctx.Err() != nil {
		err = nil // told to stop
	}
	return errors.Join(err, srv.Close(ctx))
}

// shut ends the connections.
func shut(ctx context.Context, s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}

// printAddresses tells people what is reachable where.
func (srv *Server) printAddresses(ctx context.Context, addr net.Addr, backend string) {
	base := srv.config.Scheme() + "://" + addr.String()
	fmt.Fprintf(srv.options.Stderr, "luanette %s is listening on %s\n", srv.options.Version, base)
	for _, line := range [][2]string{
		{"page", base + "/"},
		{"MCP", base + "/mcp"},
		{"health", base + "/health"},
		{"ZeroMQ", backend},
		{"data", srv.config.Data},
		{"config", orNone(srv.config.File)},
		{"keys", srv.keysNeeded(ctx)},
	} {
		if line[1] != "" {
			fmt.Fprintf(srv.options.Stderr, "  %-8s %s\n", line[0], line[1])
		}
	}
}

// keysNeeded tells people whether the doors are shut.
func (srv *Server) keysNeeded(ctx context.Context) string {
	if shut, err := srv.auth.KeyRequired(ctx); err == nil && !shut {
		return "none needed: everything is open to this machine; `luanette key create NAME` makes one"
	}
	return "needed; `luanette key list` shows them"
}

func orNone(text string) string {
	if text == "" {
		return "none; `luanette config show` prints the defaults"
	}
	return text
}
